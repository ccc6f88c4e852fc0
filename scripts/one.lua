-- closed tells whether nobody can take the lock now: 1 while a hold has it, otherwise 0, or the error.
local function closed(lock)
  return redis.pcall('EXISTS', lock)
end

-- writable removes nothing, but a replica answers READONLY and not that somebody has the lock. It returns the error, if there is one.
local function writable(lock, field)
  return redis.pcall('HDEL', lock, field)
end

