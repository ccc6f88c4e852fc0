-- withdraw is unlock on one server of a quorum, which may not have the hold.
--
-- lock     as in unlock
-- field    as in unlock
-- channel  as in unlock
-- publish  PUBLISH, or '' where nobody is to be told: the hold never had the lock
-- group    waiters listen in eight groups, on channels of their own, the lock's with a number: which of these is told
--          first; -1 if all are told. Otherwise it is enough that one is told that has somebody in it
--
-- returns 1, report   released, with the number of connections that were told as the report's first element, -1 as in unlock
--         0, report   the hold is not there
local function withdraw(lock, _, field, channel, publish, group)
  local removed = redis.pcall('HDEL', lock, field, field .. '#')
  if type(removed) == 'table' then
    return nil, removed
  end
  local told = 0
  if removed > 0 and publish ~= '' then
    local all = redis.pcall(publish, channel, '0')
    for i = 0, 7 do
      local some = redis.pcall(publish, channel .. ':' .. (group + i) % 8, '0')
      told = told + (tonumber(some) or 0)
      if told > 0 and tonumber(group) >= 0 then
        break
      end
    end
    if type(all) == 'number' then
      told = told + all
    elseif told == 0 then
      told = -1 -- a user without rights on the channel has still released the lock
    end
  end
  local said, why = report(lock, nil, told)
  return said and math.min(removed, 1), said or why
end

local verdict, value = withdraw(KEYS[1], nil, unpack(ARGV))
return verdict and {verdict, value} or value
