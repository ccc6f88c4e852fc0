-- reserve takes more tokens for a hold that is there, for the holds that follow it in its place.
--
-- lock     hash: field <uuid>:<number> = hold count
-- counter  the fencing counter
-- lease    milliseconds; a longer expiry is kept
-- field    <uuid>:<number> of the hold
-- tokens   how many to take
--
-- returns 1, token   the last of the tokens; a repeat takes others
--         -2, 0      the hold is gone
local function reserve(lock, counter, lease, field, tokens)
  local there = redis.pcall('HEXISTS', lock, field)
  if type(there) == 'table' then
    return nil, there
  end
  if there == 0 then
    local written = redis.pcall('HDEL', lock, field) -- of nothing: a replica answers READONLY and not "gone"
    if type(written) == 'table' then
      return nil, written
    end
    return -2, 0
  end
  local token = redis.pcall('INCRBY', counter, tokens)
  if type(token) == 'table' then
    return nil, token
  end
  if token >= 9007199254740992 then -- 2^53 + 1 reads as 2^53 too
    return nil, redis.error_reply('ERR fencing counter has reached 2^53, where Lua cannot count exactly')
  end
  local extended = redis.pcall('PEXPIRE', lock, lease, 'GT')
  if type(extended) == 'table' then
    return nil, extended
  end
  return 1, token
end

local verdict, value = reserve(KEYS[1], KEYS[2], unpack(ARGV))
return verdict and {verdict, value} or value
