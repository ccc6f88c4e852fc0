-- A transfer that asks for no field: its copy takes the lock from whoever has it by then (P2), and what it adds counts
-- twice (P2). It removes before it writes: the last field takes the key's expiry with it (P7).
-- KEYS: lock, counter. ARGV: lease, old, new. Returns {1, token}.
local token = redis.call('incr', KEYS[2])
redis.call('pexpire', KEYS[1], ARGV[1])
for _, field in ipairs(redis.call('hkeys', KEYS[1])) do
  if field ~= ARGV[3] then
    redis.call('hdel', KEYS[1], field)
  end
end
redis.call('hincrby', KEYS[1], ARGV[3], 1)
return {1, token}
