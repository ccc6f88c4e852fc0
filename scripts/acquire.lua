-- confirm looks at a lock that is held. It confirms that the asking hold has the lock already, or tells how long another
-- hold's lease lasts.
--
-- lock, counter, lease, field, expiry, tokens   see acquire below
-- mark                                          true: the client is to enter the line (P36). The hold that has the lock gets
--                                               its second field, as number 0 of its changes, so that its release looks at
--                                               the line
--
-- returns as acquire does. Where another hold has the lock, the second value is pttl alone, a third value is true if that hold has
-- its second field, or if the hash has no hold's field, and a fourth is that hold's field if it is of the client that asks
local function confirm(lock, counter, lease, field, expiry, tokens, mark)
  local token = 0
  local holder, other, second = holding(lock, field)
  if not holder then
    return nil, other
  end
  if holder ~= field then
    local marked = mark and not second and holder ~= '' and other ~= 'mode'
    if marked then
      second = type(redis.pcall('HINCRBY', lock, holder .. '#', '0')) ~= 'table' -- a replica refuses this, and a server at maxmemory
    end
    local written = redis.pcall('HDEL', lock, field) -- removes nothing, but a replica answers READONLY and not "held"
    if type(written) == 'table' then
      return nil, written
    end
    if other == 'mode' then
      return nil, notALock('mode') -- Redisson would not tell the end of that object on this lock's channel
    end
    local left = redis.pcall('PTTL', lock)
    if type(left) == 'table' then
      return nil, left
    end
    if marked and left == -1 and redis.pcall('HEXISTS', lock, holder) == 0 then
      redis.pcall('DEL', lock) -- the lock has expired since EXISTS, on a server whose clock goes on in a script (miniredis); Redis's does not
      left = 1
    end
    return 0, left, second or holder == '', own(holder, field)
  end
  -- This is a repeat of a command whose answer was lost: nothing is counted twice. Only this hold can have incremented the
  -- counter since the first copy, so the counter's value is the last of this hold's tokens.
  if counter then
    local why
    token, why = again(counter, expiry, tokens)
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

-- begin takes a free lock for a new hold.
--
-- lock, counter, lease, field, expiry, tokens   see acquire below
--
-- returns as acquire does
local function begin(lock, counter, lease, field, expiry, tokens)
  local token = 0
  if counter then
    local why
    token, why = take(counter, expiry, tokens)
    if not token then
      return nil, why
    end
  end
  local counted = redis.pcall('HINCRBY', lock, field, '1')
  if type(counted) == 'table' then
    return nil, counted
  end
  local expires = redis.pcall('PEXPIRE', lock, lease)
  if type(expires) == 'table' then -- the user has no right to PEXPIRE: a lock that never expires must not stay
    redis.pcall('DEL', lock)
    redis.pcall('HDEL', lock, field)
    return nil, expires
  end
  return 1, token
end

-- acquire takes a free lock for a new hold, or confirms that the hold has the lock already.
--
-- lock     hash: field <uuid>:<number> = hold count
-- counter  the fencing counter; nil for a lock without tokens
-- lease    milliseconds
-- field    <uuid>:<number> of the hold, never used for another hold
-- expiry, tokens   see take in token.lua
--
-- returns 1, token   the hold has the lock; its latest token, 0 without a counter
--         0, pttl    another hold has the lock; milliseconds until the lock's key expires, -1 where it never does
--         0, {pttl, own}   the same, where that hold, of the field own, is of the client that asks
--         nil, error
local function acquire(lock, counter, lease, field, expiry, tokens)
  local exists = redis.pcall('EXISTS', lock)
  if type(exists) == 'table' then
    return nil, exists
  end
  if exists == 1 then
    local verdict, value, _, owned = confirm(lock, counter, lease, field, expiry, tokens)
    return verdict, owned and {value, owned} or value
  end
  return begin(lock, counter, lease, field, expiry, tokens)
end
