-- Redisson's unlock: subtracts from the count, so that a copy counts again (P2), and needs memory for it (P8). Its
-- "not held" is no write (P8); a user without rights on the channel gets an error for a done release (P10).
-- KEYS: lock. ARGV: lease, field, channel. Returns nil for not held, 0 for an inner level, 1 for released.
if redis.call('hexists', KEYS[1], ARGV[2]) == 0 then
  return nil
end
if redis.call('hincrby', KEYS[1], ARGV[2], -1) > 0 then
  redis.call('pexpire', KEYS[1], ARGV[1])
  return 0
end
redis.call('del', KEYS[1])
redis.call('publish', ARGV[3], '0')
return 1
