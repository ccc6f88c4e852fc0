-- level sets the hold count of a hold that is there: a re-entry raises it, an inner unlock lowers it. The count is
-- set, not added, and each change has a number of its own, so that a copy that arrives twice or late changes nothing.
--
-- lock     hash: field <uuid>:<number> = hold count, field <uuid>:<number># = number of the latest change
-- counter  the fencing counter, for a re-entry that takes a new token; otherwise nil
-- lease    milliseconds that a re-entry asks for; 0 leaves the key's expiry as it is
-- field    <uuid>:<number> of the hold
-- count    the new hold count
-- op       number of this change, growing within the hold
-- expiry   of the counter, see take; nil for tokens without a floor
--
-- returns 1, token   done (token 0 without a counter)
--         -2, 0      the hold is gone; the lock is never taken here
local function level(lock, counter, lease, field, count, op, expiry)
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
  local change = field .. '#'
  local token = 0
  local latest = redis.pcall('HGET', lock, change)
  if type(latest) == 'table' then
    return nil, latest
  end
  if tonumber(latest or 0) >= tonumber(op) then
    if counter then
      local why
      token, why = again(counter, 1, expiry)
      if not token then
        return nil, why
      end
    end
    local written = redis.pcall('HDEL', lock, '#') -- of nothing, as above
    if type(written) ~= 'table' and tonumber(lease) > 0 then
      written = redis.pcall('HINCRBY', lock, field, '0') -- adds nothing, but replicas can confirm only what was written
    end
    if type(written) == 'table' then
      return nil, written
    end
    return 1, token
  end
  if counter then
    local why
    token, why = take(counter, 1, expiry)
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
    written = redis.pcall('HDEL', lock, '#') -- of nothing: after a write that is always allowed, HSET is too at maxmemory
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

local verdict, value = level(KEYS[1], KEYS[2], unpack(ARGV))
return verdict and {verdict, value} or value
