-- A re-entry that sets the count but has no number of its own: it takes a count that is there already for a repeat
-- of itself (P2), and a late copy raises what was lowered since (P2).
-- KEYS: lock. ARGV: field, count. Returns the count.
if tonumber(redis.call('hget', KEYS[1], ARGV[1]) or 0) < tonumber(ARGV[2]) then
  redis.call('hset', KEYS[1], ARGV[1], ARGV[2])
end
return tonumber(redis.call('hget', KEYS[1], ARGV[1]))
