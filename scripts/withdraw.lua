-- withdraw releases a hold on one server of a quorum, as unlock (unlock.lua) does. The server may not have the hold.
--
-- lock     as in unlock
-- field    as in unlock
-- channel  as in unlock
-- command  PUBLISH, or '' where nobody is to be told: the hold never had the lock
-- group    0 to 7, or -1. The waiters are in eight groups, and group N listens on channel:N. This group is told first, then
--          the groups after it, until one is told that has somebody in it; with -1 all groups are told
--
-- returns 1, report   released
--         0, report   the hold is not there
--         nil, error
--         The report is that of report.lua, of a hold that is not there; where the hold was released it says no more than its first
--         element: how many connections were told, -1 as in unlock
local function withdraw(lock, _, field, channel, command, group)
  local removed = redis.pcall('HDEL', lock, field, field .. '#')
  if type(removed) == 'table' then
    return nil, removed
  end
  local told = 0
  if removed > 0 and command ~= '' then
    local all = redis.pcall(command, channel, '0')
    for i = 0, 7 do
      local some = redis.pcall(command, channel .. ':' .. (group + i) % 8, '0')
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
  if removed > 0 then
    return 1, {told, '', '0', '0', '0', '', '0'}
  end
  local said, why = report(lock, nil, told)
  return said and 0, said or why
end
