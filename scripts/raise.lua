-- raise proposes a token to one server of a quorum. The server accepts the token from the hold that has the lock there, and
-- only if the token is larger than all tokens that the server has accepted before.
--
-- lock     hash: field <uuid>:<number> = hold count
-- counter  the fencing counter: the largest token that was accepted here
-- field    <uuid>:<number> of the hold
-- token    the proposed token
-- anew     1: the token is ahead of the time, by as much as one without a counter must be: a counter may have been forgotten. Otherwise
--          0: a server without a counter does not accept the token
-- expiry   of the counter, see accept in proposal.lua
--
-- returns  1, report   accepted
--          0, report   the token is not larger, or there is no counter, and the token is not one for that
--         -2, report   the hold is not there
--         nil, error
--         The report is that of report.lua, with 0 as its first element, and the counter as it is after this call
local function raise(lock, counter, field, token, anew, expiry)
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
  if tonumber(said[3]) >= tonumber(token) or said[3] == '0' and anew == '0' then
    return 0, said
  end
  local set
  set, why = accept(counter, token, said[4] * 1000000 + said[5], expiry)
  if not set then
    return nil, why
  end
  said[3] = token
  return 1, said
end
