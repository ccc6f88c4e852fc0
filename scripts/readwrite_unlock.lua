-- lastsOf returns for how many milliseconds the longest lease of a hold that reads lasts; 0 or less where all of its levels' leases are over. Then it
-- returns the key of that lease. A hold with more than a thousand levels counts for as long as the hash: Redis answers nobody while they are looked at.
--
-- enough  where the lease of the first level lasts so long, lastsOf looks at no other; nil or false to look at all
local function lastsOf(lock, field, enough)
  local key = ownKey(lock, field)
  local most = redis.pcall('PTTL', key)
  most = type(most) == 'number' and most or -2
  if enough and most >= enough then
    return most, key
  end
  local count = redis.pcall('HGET', lock, field)
  count = type(count) == 'string' and tonumber(count) or 0
  if count > 1000 then
    return redis.pcall('PTTL', lock), lock
  end
  for level = 2, count do
    local own = ownKey(lock, field, level)
    local left = redis.pcall('PTTL', own)
    if type(left) == 'number' and left > most then
      most, key = left, own
    end
  end
  return most, key
end

-- sweep takes out of the hash the holds whose leases are over, and makes the hash last as long as the longest lease, unless it finds one that ends with the
-- hash: of that one the hash needs no more. In a small hash the last field is the newest.
--
-- enough  for how many milliseconds a lease lasts that ends with the hash; false to look at all holds
--
-- returns whether any hold is left, or nil and an error
local function sweep(lock, enough)
  local fields = redis.pcall('HKEYS', lock)
  if fields.err then
    return nil, fields
  end
  local most, longest, over = -2, lock, {}
  for i = #fields, 1, -1 do
    local field = fields[i]
    if not reads(field) then
      return true -- of Redisson, whose holders read within their own write lock: the hash lasts as long as that
    end
    if string.match(field, '^[^:]+:%-?%d+$') then
      local left, key = lastsOf(lock, field, enough)
      if enough and left >= enough then
        return true
      end
      if left <= 0 and #over < 1000 then -- as many as a command takes
        over[#over + 1] = field
      end
      if left > most then
        most, longest = left, key
      end
    end
  end
  if #over > 0 then
    redis.pcall('HDEL', lock, unpack(over))
  end
  while most > 0 do
    redis.pcall('PEXPIRE', lock, most)
    local left = redis.pcall('PTTL', longest)
    if type(left) ~= 'number' or left >= most - 1 then
      return true
    end
    most = left -- the clock has gone on, see lasting in readwrite.lua: the hash would end later than the lease
  end
  redis.pcall('PEXPIRE', lock, '0') -- it goes
  return false
end

-- remove takes a hold out of a read-write lock. A hold that reads looks at the others only where no lease ends after its own (P51).
--
-- lock, field   see unlock
-- forced        true where somebody else than the holder releases: the hold may be Redisson's, and have several levels
--
-- returns 1, message   removed. message: what those are told who listen on the lock's channel; '' where others still read
--         0            the hold is not there
--         nil, error
local function remove(lock, field, forced)
  if not reads(field) then
    local removed = redis.pcall('HDEL', lock, field)
    if type(removed) == 'table' then
      return nil, removed
    end
    if removed == 1 and redis.pcall('HDEL', lock, 'mode') == 1 and redis.pcall('EXISTS', lock) == 1 then
      redis.pcall('HSET', lock, 'mode', 'read') -- of Redisson, whose holders read within their own write lock
    end
    return removed, '1'
  end
  local own = ownKey(lock, field)
  local left, whole = redis.pcall('PTTL', own), redis.pcall('PTTL', lock)
  local removed = redis.pcall('HDEL', lock, field)
  if type(removed) == 'table' then
    return nil, removed
  end
  redis.pcall('PEXPIRE', own, '0') -- it goes
  if removed == 0 then
    return 0
  end
  local enough = not forced and type(whole) == 'number' and whole > 0 and whole - 2 -- sweep makes the hash end a little later than a lease, at most
  if enough and type(left) == 'number' and left < enough then
    return 1, ''
  end
  local more, why = sweep(lock, enough)
  if more == nil then
    return nil, why
  end
  return 1, more and '' or '0'
end

-- announce tells the connections that listen on the lock's channel that the lock is open. Redisson wakes one of those who wait in a process for a '0',
-- and all of them for a '1'. It returns how many connections were told, or -1 where the server refused to tell anybody.
local function announce(channel, publish, message)
  local told = redis.pcall(publish, channel, message)
  return type(told) == 'table' and -1 or told
end

-- unlock releases a hold of a read-write lock without the line.
--
-- lock     see readwrite.lua
-- field    of the hold
-- channel  redisson_rwlock:{NAME}
-- publish  PUBLISH, or SPUBLISH where the waiters use sharded channels
--
-- returns 1, receivers   released. receivers: see announce
--         0, 0           the hold is not there
--         nil, error
local function unlock(lock, _, field, channel, publish)
  local verdict, message = remove(lock, field)
  if verdict ~= 1 then
    return verdict, verdict == 0 and 0 or message
  end
  return 1, message ~= '' and announce(channel, publish, message) or 0
end
