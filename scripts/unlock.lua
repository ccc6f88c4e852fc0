-- unlock releases a hold, whatever its count, and tells who listens on the lock's channel.
--
-- lock     hash
-- counter  the fencing counter, where tokens are given back that were reserved for the hold; nil otherwise
-- field    <uuid>:<number> of the hold
-- channel  redisson_lock__channel:{NAME}
-- publish  PUBLISH, or SPUBLISH where the waiters use sharded channels
-- last     what the counter says if nobody has taken a token since
-- unused   so many tokens nobody has had
--
-- returns 1, receivers, second   released; how many connections were told, as far as this server knows, -1 where it refused
--                                to; whether the hold had its second field
--         0, 0                   the hold is not there
local function unlock(lock, counter, field, channel, publish, last, unused)
  -- The key goes with its last field. Where the hold is not there this writes nothing, but a replica answers READONLY
  -- and not "gone".
  local removed = redis.pcall('HDEL', lock, field, field .. '#')
  if type(removed) == 'table' then
    return nil, removed
  end
  if removed == 0 then
    return 0, 0
  end
  if counter and redis.pcall('GET', counter) == last then
    redis.pcall('DECRBY', counter, unused) -- where that is refused they are skipped
  end
  local told = redis.pcall(publish, channel, '0')
  if type(told) == 'table' then
    told = -1 -- a user without rights on the channel has still released the lock
  end
  return 1, told, removed > 1
end

local verdict, value = unlock(KEYS[1], KEYS[2], unpack(ARGV))
return verdict and {verdict, value} or value
