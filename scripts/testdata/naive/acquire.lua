-- Redisson's fenced acquire: adds to the count, also when it is a copy (P2), and tells "held" by a PTTL that may
-- itself be the -1 of "acquired" (P7). Its "held" is no write, so that a replica says it too (P8).
-- KEYS: lock, counter. ARGV: lease, field. Returns {-1, token} or {pttl, -1}.
if redis.call('exists', KEYS[1]) == 0 or redis.call('hexists', KEYS[1], ARGV[2]) == 1 then
  local token = redis.call('incr', KEYS[2])
  redis.call('hincrby', KEYS[1], ARGV[2], 1)
  redis.call('pexpire', KEYS[1], ARGV[1])
  return {-1, token}
end
return {redis.call('pttl', KEYS[1]), -1}
