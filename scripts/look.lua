-- look tells who has a lock on one server of a quorum. It writes nothing, but begins with a write of nothing, so that a
-- replica answers READONLY and not an old truth.
--
-- lock     hash: field <uuid>:<number> = hold count, field <uuid>:<number># = number of the latest change
-- counter  the fencing counter, only read
-- field    <uuid>:<number> of the hold that is asked about; may be empty
--
-- returns 1, report   with the key's expiry in milliseconds as the report's first element, and two elements more: the
--                     asked hold's count, and the number of its latest change, 0 where there is none; an error where
--                     the hash has a field that is of no hold
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
  said[8], said[9] = counts[1] or '0', counts[2] or '0'
  return 1, said
end

local verdict, value = look(KEYS[1], KEYS[2], unpack(ARGV))
return verdict and {verdict, value} or value
