-- try does what wait (readwrite_wait.lua) does for a client that is not in the line and does not enter it.
--
-- lock, line, counter, lease, field, publish, look, expiry   see wait
--
-- returns as wait does
local function try(lock, line, counter, lease, field, publish, look, expiry)
  local there = redis.pcall('EXISTS', lock, line)
  if there == 0 then
    return begin('', lock, counter, lease, field, expiry)
  elseif there == 1 and reads(field) and modeOf(lock) == 'read' then -- it is the lock that is there: nobody waits
    return begin('read', lock, counter, lease, field, expiry)
  end
  return wait(lock, line, counter, lease, field, publish, '', '', look, '', '', expiry)
end
