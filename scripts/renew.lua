-- renew extends the leases of holds that are there. It never brings a hold back. Each lock stands for itself: a lock that
-- fails does not fail its neighbours.
--
-- KEYS[i]      lock
-- ARGV[2i-1]   lease  milliseconds; a longer expiry is kept; 0 only asks whether the hold is there
-- ARGV[2i]     field  <uuid>:<number> of the hold
--
-- returns a list of {i, why} for the locks that were not renewed: why is '' where the hold is gone, else the error. On a replica nothing
-- was written, and the reply is READONLY itself: go-redis leaves a connection for that reply, and for no list with it
local function renew(lock, lease, field)
  local there = redis.pcall('HEXISTS', lock, field)
  if there == 1 and lease ~= '0' then
    local left = redis.pcall('PTTL', lock)
    if type(left) == 'table' then
      return left.err
    end
    -- This writes also where nothing is to be extended: a replica answers READONLY, and replicas confirm only writes.
    local extended = redis.pcall('PEXPIRE', lock, math.max(left, lease))
    return type(extended) == 'table' and extended.err or nil
  end
  if type(there) == 'table' then
    return there.err
  end
  -- This removes nothing, but a replica answers READONLY, and neither "gone" nor "there".
  local written = redis.pcall('HDEL', lock, there == 1 and '#' or field)
  if type(written) == 'table' then
    return written.err
  end
  return there == 0 and '' or nil
end

