-- reserve takes more tokens for a hold that is there and for the waiters behind it, which take the lock over without a
-- command.
--
-- lock     hash: field <uuid>:<number> = hold count
-- counter  the fencing counter
-- lease    milliseconds; a longer expiry is kept
-- field    <uuid>:<number> of the hold
-- tokens   how many tokens to take
-- expiry   of the counter, see take in token.lua; nil for tokens without a floor
--
-- returns 1, token   the last of the tokens; a repeat takes other tokens
--         -2, 0      the hold is gone
--         nil, error
local function reserve(lock, counter, lease, field, tokens, expiry)
  local there = redis.pcall('HEXISTS', lock, field)
  if type(there) == 'table' then
    return nil, there
  end
  if there == 0 then
    local written = redis.pcall('HDEL', lock, field) -- removes nothing, but a replica answers READONLY and not "gone"
    if type(written) == 'table' then
      return nil, written
    end
    return -2, 0
  end
  local token, why = take(counter, tokens, expiry)
  if not token then
    return nil, why
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
