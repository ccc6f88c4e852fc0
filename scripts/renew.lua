-- renew extends the leases of holds that are there; it never brings one back. Each lock stands for itself: one that
-- fails does not fail its neighbours.
--
-- KEYS[i]      lock
-- ARGV[2i-1]   lease  milliseconds; a longer expiry is kept; 0 only asks whether the hold is there
-- ARGV[2i]     field  <uuid>:<number> of the hold
--
-- returns a list of {i, why} for the locks that were not renewed: why is '' where the hold is gone, else the error
local function renew(lock, lease, field)
  local there = redis.pcall('HEXISTS', lock, field)
  if type(there) == 'table' then
    return there.err
  end
  if there == 0 then
    local written = redis.pcall('HDEL', lock, field) -- of nothing: a replica answers READONLY and not "gone"
    return type(written) == 'table' and written.err or ''
  end
  if lease == '0' then
    local written = redis.pcall('HDEL', lock, '#') -- of nothing, as above
    return type(written) == 'table' and written.err or nil
  end
  local expired = redis.pcall('PEXPIRE', lock, math.max(redis.call('PTTL', lock), lease))
  return type(expired) == 'table' and expired.err or nil
end

local failed = {}
for i, lock in ipairs(KEYS) do
  local why = renew(lock, ARGV[2 * i - 1], ARGV[2 * i])
  if why then
    failed[#failed + 1] = {i, why}
  end
end
return failed
