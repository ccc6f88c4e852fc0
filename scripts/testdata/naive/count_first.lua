-- An acquire that counts before it takes its token: an error of the counter leaves a hash without expiry (P7, P9).
-- KEYS: lock, counter. ARGV: lease, field. Returns {1, token}.
redis.call('hincrby', KEYS[1], ARGV[2], 1)
local token = redis.call('incr', KEYS[2])
redis.call('pexpire', KEYS[1], ARGV[1])
return {1, token}
