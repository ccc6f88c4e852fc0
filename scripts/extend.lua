-- extend extends the lease of a hold on one server of a quorum, if the server has the hold. It never brings a hold back.
--
-- lock     hash: field <uuid>:<number> = hold count
-- counter  the fencing counter, only read
-- lease    milliseconds; a longer expiry is kept; 0 only asks whether the hold is there
-- field    <uuid>:<number> of the hold
--
-- returns  1, report   the hold is there
--         -2, report   the hold is not there
--         nil, error
--         The report is that of report.lua. Its first element is the PTTL of the lock's key before this call
local function extend(lock, counter, lease, field)
  local left = redis.pcall('PTTL', lock)
  if type(left) == 'table' then
    return nil, left
  end
  local there = redis.pcall('HEXISTS', lock, field)
  if type(there) == 'table' then
    return nil, there
  end
  local written
  if there == 1 and tonumber(lease) > left then
    written = redis.pcall('PEXPIRE', lock, lease)
  else
    written = redis.pcall('HDEL', lock, '#') -- removes nothing, but a replica answers READONLY
  end
  if type(written) == 'table' then
    return nil, written
  end
  local said, why = report(lock, counter, left)
  return said and (there == 1 and 1 or -2), said or why
end
