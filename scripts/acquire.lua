-- acquire takes a free lock for a new hold, or confirms that the hold has it already.
--
-- KEYS[1]  lock     hash: field <uuid>:<number> = hold count
-- KEYS[2]  counter  the fencing counter; left out for a lock without tokens
-- ARGV[1]  lease    milliseconds
-- ARGV[2]  field    <uuid>:<number> of the hold, never used for another one
--
-- returns {1, token}   the hold has the lock (token 0 without a counter)
--         {0, pttl}    another holder has it; pttl is -1 where its key never expires
if redis.call('HEXISTS', KEYS[1], ARGV[2]) == 1 then
  -- A repeat of a command whose answer was lost: nothing is counted twice. Only this hold can have incremented the
  -- counter since, so its value is this hold's token.
  local token = 0
  if KEYS[2] then
    token = redis.call('GET', KEYS[2]) or redis.call('INCR', KEYS[2])
  end
  redis.call('PEXPIRE', KEYS[1], math.max(redis.call('PTTL', KEYS[1]), ARGV[1]))
  return {1, token}
end
if redis.call('EXISTS', KEYS[1]) == 1 then
  redis.call('HDEL', KEYS[1], ARGV[2]) -- of nothing: a write, so that a replica answers READONLY and not "held"
  return {0, redis.call('PTTL', KEYS[1])}
end
local token = 0
if KEYS[2] then
  token = redis.call('INCR', KEYS[2]) -- first: where it is refused, nothing is left behind
  if token >= 9007199254740992 then -- 2^53 + 1 reads as 2^53 too
    return redis.error_reply('ERR fencing counter has reached 2^53, where Lua cannot count exactly')
  end
end
redis.call('HINCRBY', KEYS[1], ARGV[2], 1)
local expires = redis.pcall('PEXPIRE', KEYS[1], ARGV[1])
if type(expires) == 'table' then -- refused, to a user without the right to it: a lock that never expires must not stay
  redis.pcall('DEL', KEYS[1])
  redis.pcall('HDEL', KEYS[1], ARGV[2])
  return expires
end
return {1, token}
