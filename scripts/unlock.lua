-- unlock releases a hold, whatever its count, and tells the waiters. It is also what forces a lock open, given the
-- field of the hold that was seen there.
--
-- lock     hash
-- field    <uuid>:<number> of the hold
-- channel  redisson_lock__channel:{NAME}
-- publish  PUBLISH, or SPUBLISH where the waiters use sharded channels
--
-- returns 1, receivers   released; how many connections were told, as far as this server knows
--         0, 0           the hold is not there
local function unlock(lock, _, field, channel, publish)
  -- The key goes with its last field. Where the hold is not there this writes nothing, but a replica answers READONLY
  -- and not "gone".
  local removed = redis.pcall('HDEL', lock, field, field .. '#')
  if type(removed) == 'table' then
    return nil, removed
  end
  if removed == 0 then
    return 0, 0
  end
  local told = redis.pcall(publish, channel, '0')
  if type(told) == 'table' then
    told = 0 -- a user without rights on the channel has still released the lock
  end
  return 1, told
end

local verdict, value = unlock(KEYS[1], KEYS[2], unpack(ARGV))
return verdict and {verdict, value} or value
