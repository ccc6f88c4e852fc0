-- permitOutside does what permit (permit.lua) does for a client that is not in the line and does not enter it.
--
-- last, line, counter, lease, field, publish, look, expiry   see permit
--
-- returns as permit does
local function permitOutside(last, line, counter, lease, field, publish, look, expiry)
  if redis.pcall('EXISTS', last, line) == 0 then -- nobody waits, and a slot is free
    return begin(last, counter, lease, field, expiry)
  end
  return permit(last, line, counter, lease, field, publish, '', '', look, '', '', expiry)
end
