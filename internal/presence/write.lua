-- write writes what a client says of itself, which expires by itself unless the client writes again.
--
-- KEYS[1]  hash: what the client says
-- ARGV[1]  milliseconds until the hash expires
-- ARGV[2]  milliseconds since the client's first write
-- ARGV[3]  a field, ARGV[4] its value, and so on
--
-- Three fields are the script's: since, the server's time of the first write, also where its hash has expired since, seen, that of this one, both in
-- milliseconds, and lasts, which is ARGV[1]. A reader takes from lasts and the hash's TTL how long ago it was written.
local now = redis.call('TIME')
local ms = now[1] * 1000 + math.floor(now[2] / 1000)
redis.call('HSETNX', KEYS[1], 'since', string.format('%.0f', ms - ARGV[2]))
redis.call('HSET', KEYS[1], 'seen', string.format('%.0f', ms), 'lasts', ARGV[1], unpack(ARGV, 3))
redis.call('PEXPIRE', KEYS[1], ARGV[1])
return 1
