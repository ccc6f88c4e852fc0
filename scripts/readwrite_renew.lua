-- renew extends the leases of holds that read. It never brings a hold back: the hold is there while both its field and its own key are (P53). The rest is as in
-- renew.lua.
--
-- KEYS[i]      lock. Behind all locks are the keys that these holds have for themselves (P54)
-- ARGV[2i-1]   lease  milliseconds; a longer expiry is kept; 0 only asks whether the hold is there
-- ARGV[2i]     field  of the hold
local function renew(lock, lease, field, own)
  local there, left = redis.pcall('HEXISTS', lock, field), redis.pcall('PTTL', own)
  if type(there) == 'table' or type(left) == 'table' then
    return type(there) == 'table' and there.err or left.err
  end
  if there == 0 or left == -2 then
    local removed = redis.pcall('HDEL', lock, field)
    return type(removed) == 'table' and removed.err or ''
  end
  if lease == '0' then
    local written = redis.pcall('HDEL', lock, '#')
    return type(written) == 'table' and written.err or nil
  end
  local whole = redis.pcall('PTTL', lock)
  local why = type(whole) == 'table' and whole or lasting(lock, whole, lease)
  if why then
    return why.err
  end
  local extended = redis.pcall('PEXPIRE', own, math.max(left, lease))
  return type(extended) == 'table' and extended.err or nil
end

