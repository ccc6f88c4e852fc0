-- take gives a lock to somebody else than the clients of the test.
--
-- KEYS[1]  the lock
-- KEYS[2]  its fencing counter
-- ARGV[1]  the field of the new holder
-- ARGV[2]  the lease in milliseconds
-- ARGV[3]  '1': whoever has the lock; '0': only a lock that is open to the new holder
-- ARGV[4]  'read' or 'write' for a read-write lock, otherwise ''
--
-- returns  the new holder's token, 0 where the lock was not taken; then the fields of the holders before
local lock, counter, field, lease, anyway, mode = KEYS[1], KEYS[2], ARGV[1], ARGV[2], ARGV[3] == '1', ARGV[4]

-- lease of a hold that reads
local function leaseOf(reader)
  local base = string.find(lock, '{', 1, true) and lock or '{' .. lock .. '}'
  return base .. ':' .. reader .. ':rwlock_timeout:1'
end

local now = redis.call('HGET', lock, 'mode') or ''
local before = {}
for _, one in ipairs(redis.call('HKEYS', lock)) do
  if string.sub(one, -1) ~= '#' and one ~= 'mode' and one ~= 'phase' then
    before[#before + 1] = one
  end
end
local joins = mode == 'read' and now == 'read' and not anyway
if #before > 0 and not joins and not anyway then
  return {0, unpack(before)}
end
local token = joins and tonumber(string.match(redis.call('HGET', lock, 'phase') or '', '^t(%d+)$') or '') or redis.call('INCR', counter)
local left = joins and redis.call('PTTL', lock) or 0
if not joins then
  for _, one in ipairs(before) do
    redis.call('DEL', leaseOf(one))
  end
  redis.call('DEL', lock)
end
redis.call('HSET', lock, field, 1)
if mode ~= '' then
  redis.call('HSET', lock, 'mode', mode)
end
if mode == 'read' then
  redis.call('HSET', lock, 'phase', 't' .. token)
  redis.call('SET', leaseOf(field), 1, 'PX', lease)
end
redis.call('PEXPIRE', lock, math.max(left, lease))
return {token, unpack(before)}
