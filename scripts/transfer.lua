-- transfer passes a lock on from one hold to the next, in one step. It tells nobody: the client that sends it has both
-- holds.
--
-- lock     hash: field <uuid>:<number> = hold count
-- counter  the fencing counter; nil for a lock without tokens
-- lease    milliseconds of the new hold
-- field    <uuid>:<number> of the new hold
-- old      <uuid>:<number> of the hold that gives the lock up, whatever its count
-- expiry, tokens   see take in token.lua
--
-- returns 1, token   the new hold has the lock; its latest token, 0 without a counter
--         -2, 0      the old hold is gone; nothing was passed on
--         nil, error
local function transfer(lock, counter, lease, field, old, expiry, tokens)
  local token = 0
  local counts = redis.pcall('HMGET', lock, field, old)
  if counts.err then
    return nil, counts
  end
  if counts[1] then -- this is a repeat: the new hold has the lock already, and nothing is counted twice
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
  if not counts[2] then
    local written = redis.pcall('HDEL', lock, old) -- removes nothing, but a replica answers READONLY and not "gone"
    if type(written) == 'table' then
      return nil, written
    end
    return -2, 0
  end
  if counter then
    local why
    token, why = take(counter, expiry, tokens)
    if not token then
      return nil, why
    end
  end
  -- The new field comes before the old one goes: a hash that loses its last field loses its expiry too.
  local counted = redis.pcall('HINCRBY', lock, field, '1')
  if type(counted) == 'table' then
    return nil, counted
  end
  local expires = redis.pcall('PEXPIRE', lock, lease) -- after the new field: a lease that ends at once deletes that too
  if type(expires) == 'table' then
    redis.pcall('HDEL', lock, field)
    return nil, expires
  end
  local left = redis.pcall('HDEL', lock, old, old .. '#')
  if type(left) == 'table' then
    redis.pcall('HDEL', lock, field)
    return nil, left
  end
  return 1, token
end
