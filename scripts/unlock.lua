-- unlock releases a hold, whatever its count, and tells the waiters. It is also what forces a lock open, given the
-- field of the hold that was seen there.
--
-- lock     hash
-- field    <uuid>:<number> of the hold
-- channel  redisson_lock__channel:{NAME}
-- publish  PUBLISH, or SPUBLISH where the waiters use sharded channels
--
-- returns {1, receivers}   released; how many connections were told, as far as this server knows
--         {0, 0}           the hold is not there
local function unlock(lock, _, field, channel, publish)
  local there = redis.pcall('HEXISTS', lock, field)
  if type(there) == 'table' then
    return there
  end
  if there == 0 then
    local written = redis.pcall('HDEL', lock, field) -- of nothing: a replica answers READONLY and not "gone"
    if type(written) == 'table' then
      return written
    end
    return {0, 0}
  end
  local deleted = redis.pcall('DEL', lock)
  if type(deleted) == 'table' then
    return deleted
  end
  local told = redis.pcall(publish, channel, '0')
  if type(told) == 'table' then
    told = 0 -- a user without rights on the channel has still released the lock
  end
  return {1, told}
end

return unlock(KEYS[1], KEYS[2], unpack(ARGV))
