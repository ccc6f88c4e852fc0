-- Redisson's forced unlock: deletes whatever is there, so that its copy opens the next holder's lock (P12).
-- KEYS: lock. Returns 1 or 0.
return redis.call('del', KEYS[1])
