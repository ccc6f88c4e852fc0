-- waiting tells how many clients wait in the line. It changes nothing.
--
-- lock     hash, not looked at
-- line     zset of the clients that wait, see line.lua
--
-- returns 1, count     count: how many tickets are in the line, 0 for a user without the right to the line
--         nil, error
local function waiting(lock, line, _)
  local count = lined('ZCARD', line)
  if refused then
    return 1, 0
  end
  if type(count) == 'table' then
    return nil, count
  end
  return 1, count
end
