-- raise proposes a token to one server of a quorum, which accepts it from the hold that has the lock there, and only if
-- it is larger than all that it has accepted before.
--
-- lock     hash: field <uuid>:<number> = hold count
-- counter  the fencing counter: the largest token that was accepted here
-- field    <uuid>:<number> of the hold
-- token    the proposed one
-- expiry   of the counter, milliseconds from when its value was the time, see take; 0: never
--
-- returns  1, report   accepted
--          0, report   not larger
--         -2, report   the hold is not there
--         with 0 as the report's first element and the counter as it is now
local function raise(lock, counter, field, token, expiry)
  local there = redis.pcall('HEXISTS', lock, field)
  if type(there) == 'table' then
    return nil, there
  end
  local written = redis.pcall('HDEL', lock, '#') -- of nothing: a replica answers READONLY
  if type(written) == 'table' then
    return nil, written
  end
  local said, why = report(lock, counter, 0)
  if not said then
    return nil, why
  end
  if there == 0 then
    return -2, said
  end
  if tonumber(said[3]) >= tonumber(token) then
    return 0, said
  end
  local set
  if tonumber(expiry) > 0 then
    local ahead = math.max(tonumber(token) - (said[4] * 1000000 + said[5]), 0) / 1000
    set = redis.pcall('SET', counter, token, 'PX', string.format('%.0f', expiry + ahead))
  else
    set = redis.pcall('SET', counter, token)
  end
  if set.err then
    return nil, set
  end
  said[3] = token
  return 1, said
end

local verdict, value = raise(KEYS[1], KEYS[2], unpack(ARGV))
return verdict and {verdict, value} or value
