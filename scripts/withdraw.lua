-- withdraw is unlock on one server of a quorum, which may not have the hold.
--
-- lock     as in unlock
-- field    as in unlock
-- channel  as in unlock
-- publish  PUBLISH, or '' where nobody is to be told: the hold never had the lock
--
-- returns 1, report   released, with the number of connections that were told as the report's first element
--         0, report   the hold is not there
local function withdraw(lock, _, field, channel, publish)
  local removed = redis.pcall('HDEL', lock, field, field .. '#')
  if type(removed) == 'table' then
    return nil, removed
  end
  local told = 0
  if removed > 0 and publish ~= '' then
    told = redis.pcall(publish, channel, '0')
    if type(told) == 'table' then
      told = 0 -- a user without rights on the channel has still released the lock
    end
  end
  local said, why = report(lock, nil, told)
  return said and math.min(removed, 1), said or why
end

local verdict, value = withdraw(KEYS[1], nil, unpack(ARGV))
return verdict and {verdict, value} or value
