-- withdrawInLine releases a hold on one server of a quorum, as release (release.lua) does. The server may not have the hold.
--
-- lock, line, field, channel, publish, again, known   see release
-- token    the latest token that the client knows which releases, 0 for none
--
-- returns as withdraw (withdraw.lua) does. Where the holder itself releases, the client that is called is told the hold's field, and may
-- drop that hold on the other servers: the holder has given it up on all of them. What was dropped here counts as released (P40)
local function withdrawInLine(lock, line, _, field, channel, publish, token, again, known)
  local mine = (tonumber(known) or 0) >= 0
  local verdict, value = release(lock, line, nil, field, channel, publish, again, known, mine and ' ' .. field .. ' ' .. token or nil)
  if verdict == 1 then
    local list = type(value) == 'table' and value or {value, 0, 0}
    return 1, {list[1], '', '0', '0', '0', '', '0', '', list[2], list[3]}
  end
  if verdict == 0 and lined('DEL', line .. ':' .. field) == 1 then
    return 1, {0, '', '0', '0', '0', '', '0', '', 0, 0}
  end
  if not verdict then
    return nil, value
  end
  return notThere(lock)
end
