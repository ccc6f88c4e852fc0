-- retain passes a lock on to a hold of the same client that nobody has yet, if others listen for its release; otherwise it
-- releases it.
--
-- lock     hash: field <uuid>:<number> = hold count
-- counter  the fencing counter; nil for a lock without tokens
-- lease    milliseconds of the new hold
-- field    <uuid>:<number> of the new hold
-- old      <uuid>:<number> of the hold that gives it up, whatever its count
-- channel  redisson_lock__channel:{NAME}
-- known    how many of the channel's listeners are the client itself
-- expiry   of the counter, see take; nil for tokens without a floor
--
-- returns 1, token       the new hold has the lock; its token, 0 without a counter
--         2, receivers   released; how many connections were told, -1 as in unlock
--         -2, 0          the old hold is gone; nothing was passed on
local function retain(lock, counter, lease, field, old, channel, known, expiry)
  local listening = redis.pcall('PUBSUB', 'NUMSUB', channel)
  if (listening.err or listening[2] <= tonumber(known)) and redis.pcall('HEXISTS', lock, field) == 0 then
    local released, told = unlock(lock, nil, old, channel, 'PUBLISH')
    if released == 0 then
      return -2, 0
    end
    return released and 2, told
  end
  return transfer(lock, counter, lease, field, 1, old, expiry)
end

local verdict, value = retain(KEYS[1], KEYS[2], unpack(ARGV))
return verdict and {verdict, value} or value
