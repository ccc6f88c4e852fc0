-- index puts a client into the index of clients, and takes out those that count no more.
--
-- KEYS[1]  zset: the clients' ids, by the server's time in milliseconds until which they count
-- ARGV[1]  the client's id
-- ARGV[2]  milliseconds for which the client counts from now on
local now = redis.call('TIME')
local ms = now[1] * 1000 + math.floor(now[2] / 1000)
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', string.format('(%.0f', ms))
redis.call('ZADD', KEYS[1], string.format('%.0f', ms + ARGV[2]), ARGV[1])
if redis.call('PTTL', KEYS[1]) < 2 * ARGV[2] then
    redis.call('PEXPIRE', KEYS[1], string.format('%.0f', 2 * ARGV[2]))
end
return 1
