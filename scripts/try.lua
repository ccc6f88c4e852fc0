-- try is wait of a client that is not in the line and does not enter it, with fewer arguments: most acquires find nobody there.
--
-- lock, line, counter, lease, field, tokens, publish, expiry   see wait
--
-- returns as wait does
local function try(lock, line, counter, lease, field, tokens, publish, expiry)
  return wait(lock, line, counter, lease, field, tokens, publish, '', '', '0', '', expiry)
end

local verdict, value = try(KEYS[1], KEYS[2], KEYS[3], unpack(ARGV))
return verdict and {verdict, value} or value
