-- recount sets the hold count of a hold on one server of a quorum, as level (level.lua) does, and takes no token.
--
-- lock     as in level
-- counter  the fencing counter, only read
-- lease    as in level
-- field    as in level
-- count    as in level
-- op       as in level
--
-- returns  1, report   done
--         -2, report   the hold is not there
--         nil, error
--         The report is that of report.lua, with 0 as its first element
local function recount(lock, counter, lease, field, count, op)
  local verdict, why = level(lock, nil, lease, field, count, op)
  if not verdict then
    return nil, why
  end
  local said
  said, why = report(lock, counter, 0)
  return said and verdict, said or why
end
