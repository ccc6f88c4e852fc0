-- notThere is what withdraw, below, returns where the hold is not there.
local function notThere(lock)
  local said, why = report(lock, nil, 0)
  if not said then
    return nil, why
  end
  said[9], said[10] = 0, 0
  return 0, said
end

-- withdraw releases a hold on one server of a quorum, as unlock (unlock.lua) does, and calls nobody. The server may not have the hold.
--
-- lock     as in unlock
-- field    as in unlock
-- channel  as in unlock
-- command  PUBLISH, or '' where nobody is to be told
--
-- returns 1, report   released
--         0, report   the hold is not there
--         nil, error
--         The report is that of report.lua, of a hold that is not there; where the hold was released it says no more than its first
--         element: how many connections were told, -1 as in unlock. Two more elements follow: what call in line.lua has returned,
--         and the score of a ticket that has entered the line; both 0
local function withdraw(lock, _, field, channel, command)
  local verdict, value = remove(lock, field)
  if verdict == 1 then
    return 1, {command == '' and 0 or announce(channel, command), '', '0', '0', '0', '', '0', '', 0, 0}
  end
  if not verdict then
    return nil, value
  end
  return notThere(lock)
end
