-- look tells which hold has a lock on one server of a quorum. It changes nothing, but begins with a write command that
-- removes nothing, so that a replica answers READONLY and not with old data (P8).
--
-- lock     hash: field <uuid>:<number> = hold count, second field <uuid>:<number># = number of the latest change of the
--          count
-- counter  the fencing counter, only read
-- field    <uuid>:<number> of the hold that is asked about; may be empty
--
-- returns 1, report    the report is that of report.lua. Its first element is the PTTL of the lock's key in milliseconds.
--                      Two more elements follow: the asked hold's count, and the number of its latest change, 0 where there
--                      is none
--         nil, error   also where the hash has a field that is of no hold
local function look(lock, counter, field)
  local written = redis.pcall('HDEL', lock, '#')
  if type(written) == 'table' then
    return nil, written
  end
  local left = redis.pcall('PTTL', lock)
  if type(left) == 'table' then
    return nil, left
  end
  local holder, other = holding(lock)
  if not holder or other then
    return nil, holder and notALock(other) or other
  end
  local said, why = report(lock, counter, left)
  if not said then
    return nil, why
  end
  local counts = redis.pcall('HMGET', lock, field, field .. '#')
  if counts.err then
    return nil, counts
  end
  said[9], said[10] = counts[1] or '0', counts[2] or '0'
  return 1, said
end
