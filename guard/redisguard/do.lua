
-- do runs one command.
--
-- KEYS  after those of the guard, the command's: for Redis Cluster, as far as they are known
-- ARGV  after those of the guard, the command
return guarded(function()
  return redis.pcall(unpack(ARGV, first.args + 1))
end)
