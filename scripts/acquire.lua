-- confirm looks at a lock that somebody has: it confirms that the hold has it already, or tells how long another one's lasts.
--
-- lock, counter, lease, field, tokens, expiry   see acquire
-- mark                                          the client is to enter the line: the hold that has the lock gets its second
--                                               field, as number 0 of its changes, so that its release looks at the line
--
-- returns as acquire does, and where another holder has it whether the hold has its second field
local function confirm(lock, counter, lease, field, tokens, expiry, mark)
  local token = 0
  local holder, other, second = holding(lock, field)
  if not holder then
    return nil, other
  end
  if holder ~= field then
    if mark and not second and holder ~= '' and other ~= 'mode' then
      second = type(redis.pcall('HINCRBY', lock, holder .. '#', '0')) ~= 'table' -- refused by a replica, and at maxmemory
    end
    local written = redis.pcall('HDEL', lock, field) -- of nothing: a replica answers READONLY and not "held"
    if type(written) == 'table' then
      return nil, written
    end
    if other == 'mode' then
      return nil, notALock('mode') -- its end would not be told on this lock's channel
    end
    local left = redis.pcall('PTTL', lock)
    if type(left) == 'table' then
      return nil, left
    end
    return 0, left, second or holder == ''
  end
  -- A repeat of a command whose answer was lost: nothing is counted twice. Only this hold can have incremented the
  -- counter since, so its value is the last of this hold's tokens.
  if counter then
    local why
    token, why = again(counter, tokens, expiry)
    if not token then
      return nil, why
    end
  end
  local left = redis.pcall('PTTL', lock)
  if type(left) == 'table' then
    return nil, left
  end
  local extended = redis.pcall('PEXPIRE', lock, math.max(left, lease))
  if type(extended) == 'table' then
    return nil, extended
  end
  return 1, token
end

-- begin takes a free lock.
--
-- lock, counter, lease, field, tokens, expiry   see acquire
--
-- returns as acquire does
local function begin(lock, counter, lease, field, tokens, expiry)
  local token = 0
  if counter then
    local why
    token, why = take(counter, tokens, expiry)
    if not token then
      return nil, why
    end
  end
  local counted = redis.pcall('HINCRBY', lock, field, '1')
  if type(counted) == 'table' then
    return nil, counted
  end
  local expires = redis.pcall('PEXPIRE', lock, lease)
  if type(expires) == 'table' then -- refused, to a user without the right to it: a lock that never expires must not stay
    redis.pcall('DEL', lock)
    redis.pcall('HDEL', lock, field)
    return nil, expires
  end
  return 1, token
end

-- acquire takes a free lock for a new hold, or confirms that the hold has it already.
--
-- lock     hash: field <uuid>:<number> = hold count
-- counter  the fencing counter; nil for a lock without tokens
-- lease    milliseconds
-- field    <uuid>:<number> of the hold, never used for another one
-- tokens   how many to take; the hold's own is the first of them
-- expiry   of the counter, see take; nil for tokens without a floor
--
-- returns 1, token   the hold has the lock; the last of its tokens, 0 without a counter
--         0, pttl    another holder has it; pttl is -1 where its key never expires
local function acquire(lock, counter, lease, field, tokens, expiry)
  local exists = redis.pcall('EXISTS', lock)
  if type(exists) == 'table' then
    return nil, exists
  end
  if exists == 1 then
    return confirm(lock, counter, lease, field, tokens, expiry)
  end
  return begin(lock, counter, lease, field, tokens, expiry)
end

local verdict, value = acquire(KEYS[1], KEYS[2], unpack(ARGV))
return verdict and {verdict, value} or value
