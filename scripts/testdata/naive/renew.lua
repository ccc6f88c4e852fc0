-- A renewal that sets what it was given: it shortens a longer expiry (P11), one bad key ends the batch (P14), and a
-- replica answers "gone" (P8).
-- KEYS: locks. ARGV: lease, field of each. Returns 1 or 0 for each.
local out = {}
for i, lock in ipairs(KEYS) do
  out[i] = redis.call('hexists', lock, ARGV[2 * i])
  if out[i] == 1 then
    redis.call('pexpire', lock, ARGV[2 * i - 1])
  end
end
return out
