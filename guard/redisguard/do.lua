
-- do runs one command.
--
-- KEYS  after those of the guard, the command's: for Redis Cluster and servers that insist on it, as far as they are known
-- ARGV  after those of the guard, the marker as the writer names it, and then the command
first.args = first.args + 1
if ARGV[first.args] ~= marker then -- the command would be done to the key that the writer names, and the token be remembered elsewhere
  return redis.error_reply('ERR a hook of the Redis client, or a proxy, changes the names of keys, and cannot change those of a command in Do: use Eval')
end
return guarded(function()
  return redis.pcall(unpack(ARGV, first.args + 1))
end)
