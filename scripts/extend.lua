-- extend extends the lease of a hold that is there, on one server of a quorum; it never brings one back.
--
-- lock     hash: field <uuid>:<number> = hold count
-- counter  the fencing counter, only read
-- lease    milliseconds; a longer expiry is kept; 0 only asks whether the hold is there
-- field    <uuid>:<number> of the hold
--
-- returns  1, report   it is there
--         -2, report   it is not
--         with the key's expiry before it as the report's first element
local function extend(lock, counter, lease, field)
  local left = redis.pcall('PTTL', lock)
  if type(left) == 'table' then
    return nil, left
  end
  local there = redis.pcall('HEXISTS', lock, field)
  if type(there) == 'table' then
    return nil, there
  end
  local written
  if there == 1 and tonumber(lease) > left then
    written = redis.pcall('PEXPIRE', lock, lease)
  else
    written = redis.pcall('HDEL', lock, '#') -- of nothing: a replica answers READONLY
  end
  if type(written) == 'table' then
    return nil, written
  end
  local said, why = report(lock, counter, left)
  return said and (there == 1 and 1 or -2), said or why
end

local verdict, value = extend(KEYS[1], KEYS[2], unpack(ARGV))
return verdict and {verdict, value} or value
