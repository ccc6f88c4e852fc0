-- level sets the hold count of a hold that is there: a re-entry raises it, an inner unlock lowers it. The count is
-- set, not added, and each change has a number of its own, so that a copy that arrives twice or late changes nothing.
--
-- KEYS[1]  lock     hash: field <uuid>:<number> = hold count, field <uuid>:<number># = number of the latest change
-- KEYS[2]  counter  the fencing counter, for a re-entry that takes a new token; otherwise left out
-- ARGV[1]  lease    milliseconds that a re-entry asks for; 0 leaves the key's expiry as it is
-- ARGV[2]  field    <uuid>:<number> of the hold
-- ARGV[3]  count    the new hold count
-- ARGV[4]  op       number of this change, growing within the hold
--
-- returns {1, token}   done (token 0 without a counter)
--         {-2, 0}      the hold is gone; the lock is never taken here
if redis.call('HEXISTS', KEYS[1], ARGV[2]) == 0 then
  redis.call('HDEL', KEYS[1], ARGV[2]) -- of nothing: a replica answers READONLY and not "gone"
  return {-2, 0}
end
local change = ARGV[2] .. '#'
local token = 0
if tonumber(redis.call('HGET', KEYS[1], change) or 0) >= tonumber(ARGV[4]) then
  if KEYS[2] then
    token = redis.call('GET', KEYS[2]) or redis.call('INCR', KEYS[2])
  end
  redis.call('HDEL', KEYS[1], '#') -- of nothing, as above
  return {1, token}
end
if KEYS[2] then
  token = redis.call('INCR', KEYS[2])
  if token >= 9007199254740992 then -- 2^53 + 1 reads as 2^53 too
    return redis.error_reply('ERR fencing counter has reached 2^53, where Lua cannot count exactly')
  end
end
if tonumber(ARGV[1]) > 0 then
  redis.call('PEXPIRE', KEYS[1], math.max(redis.call('PTTL', KEYS[1]), ARGV[1]))
else
  redis.call('HDEL', KEYS[1], '#') -- of nothing: after a write that is always allowed, HSET is too at maxmemory
end
redis.call('HSET', KEYS[1], ARGV[2], ARGV[3], change, ARGV[4])
return {1, token}
