-- level sets the hold count of a hold that is there: a re-entry raises the count, an inner unlock lowers it. The count is
-- set, not added, and each change has a number of its own, so that a copy that arrives twice or late changes nothing (P2).
--
-- lock     hash: field <uuid>:<number> = hold count, second field <uuid>:<number># = number of the latest change of the
--          count
-- counter  the fencing counter, for a re-entry that takes a new token; otherwise nil
-- lease    milliseconds that a re-entry asks for; 0 leaves the key's expiry as it is
-- field    <uuid>:<number> of the hold
-- count    the new hold count
-- op       number of this change, growing within the hold
-- expiry, tokens   see take in token.lua
--
-- returns 1, token   done (token 0 without a counter)
--         -2, 0      the hold is gone; level never takes a lock
--         nil, error
local function level(lock, counter, lease, field, count, op, expiry, tokens)
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
  local change = field .. '#'
  local token = 0
  local latest = redis.pcall('HGET', lock, change)
  if type(latest) == 'table' then
    return nil, latest
  end
  if tonumber(latest or 0) >= tonumber(op) then
    if counter then
      local why
      token, why = again(counter, expiry, tokens)
      if not token then
        return nil, why
      end
    end
    local written = redis.pcall('HDEL', lock, '#') -- removes nothing, but a replica answers READONLY
    if type(written) ~= 'table' and tonumber(lease) > 0 then
      written = redis.pcall('HINCRBY', lock, field, '0') -- adds nothing, but replicas confirm only writes
    end
    if type(written) == 'table' then
      return nil, written
    end
    return 1, token
  end
  if counter then
    local why
    token, why = take(counter, expiry, tokens)
    if not token then
      return nil, why
    end
  end
  local written
  if tonumber(lease) > 0 then
    local left = redis.pcall('PTTL', lock)
    if type(left) == 'table' then
      return nil, left
    end
    written = redis.pcall('PEXPIRE', lock, math.max(left, lease))
  else
    written = redis.pcall('HDEL', lock, '#') -- removes nothing, but after this write Redis allows HSET at maxmemory
  end
  if type(written) == 'table' then
    return nil, written
  end
  local set = redis.pcall('HSET', lock, field, count, change, op)
  if type(set) == 'table' then
    return nil, set
  end
  return 1, token
end
