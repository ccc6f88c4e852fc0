-- write writes what a client says of itself, which expires by itself unless the client writes again.
--
-- KEYS[1]  hash: what the client says
-- ARGV[1]  milliseconds until the hash expires
-- ARGV[2]  a field, ARGV[3] its value, and so on
--
-- Two fields are the server's: since, the server's time of the first write, and seen, that of this one, in milliseconds.
local now = redis.call('TIME')
local ms = string.format('%.0f', now[1] * 1000 + math.floor(now[2] / 1000))
redis.call('HSETNX', KEYS[1], 'since', ms)
redis.call('HSET', KEYS[1], 'seen', ms, unpack(ARGV, 2))
redis.call('PEXPIRE', KEYS[1], ARGV[1])
return 1
