-- take gives a lock to somebody else than the clients of the test.
--
-- KEYS[1]  the lock
-- KEYS[2]  its fencing counter
-- ARGV[1]  the field of the new holder
-- ARGV[2]  the lease in milliseconds
-- ARGV[3]  '1': whoever has the lock; '0': only a free lock
--
-- returns  the field of the holder before, '' for none; the new holder's token, 0 where the lock was not taken
local before = ''
for _, field in ipairs(redis.call('HKEYS', KEYS[1])) do
  if string.sub(field, -1) ~= '#' then
    before = field
  end
end
if before ~= '' and ARGV[3] == '0' then
  return {before, 0}
end
redis.call('DEL', KEYS[1])
redis.call('HSET', KEYS[1], ARGV[1], 1)
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return {before, redis.call('INCR', KEYS[2])}
