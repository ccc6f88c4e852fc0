-- try does what wait (wait.lua) does for a client that is not in the line and does not enter it. It has fewer arguments:
-- most acquires find nobody in the line.
--
-- lock, line, counter, lease, field, publish, look, expiry, tokens   see wait
--
-- returns as wait does
local function try(lock, line, counter, lease, field, publish, look, expiry, tokens)
  if redis.pcall('EXISTS', lock, line) == 0 then -- one command where nobody waits
    return begin(lock, counter, lease, field, expiry, tokens)
  end
  return wait(lock, line, counter, lease, field, publish, '', '', look, '', '', expiry, tokens)
end
