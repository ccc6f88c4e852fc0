-- raise proposes a token to one server of a quorum. The server accepts the token from the hold that has the lock there, and
-- only if the token is larger than all tokens that the server has accepted before.
--
-- lock     hash: field <uuid>:<number> = hold count
-- counter  the fencing counter: the largest token that was accepted here
-- field    <uuid>:<number> of the hold
-- token    the proposed token
-- expiry   of the counter, milliseconds from when the server's time has reached the token, see take in token.lua; 0: never
--
-- returns  1, report   accepted
--          0, report   the token is not larger
--         -2, report   the hold is not there
--         nil, error
--         The report is that of report.lua, with 0 as its first element, and the counter as it is after this call
local function raise(lock, counter, field, token, expiry)
  local there = redis.pcall('HEXISTS', lock, field)
  if type(there) == 'table' then
    return nil, there
  end
  local written = redis.pcall('HDEL', lock, '#') -- removes nothing, but a replica answers READONLY
  if type(written) == 'table' then
    return nil, written
  end
  local said, why = report(lock, counter, 0, there == 1 and field or nil)
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
