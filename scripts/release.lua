-- release releases a hold, as unlock (unlock.lua) does, and calls the first client in the line. ForceUnlock uses it too,
-- with the field of the hold that it saw (P12).
--
-- lock     hash
-- line     zset of the clients that wait, see line.lua
-- field, channel, publish   see unlock
-- again    a ticket for the next stay in the line of the client that releases, where more of its waiters wait; '' for none.
--          nil: nobody was in the line when the hold took the lock, and so nobody is to be called, unless the hold has its
--          second field, which a client that enters the line gives it (P36; confirm in acquire.lua)
-- known    how many of the connections that listen on the channel are of the client that releases, 1 or 0; nil for 0; -1 where
--          somebody else than the holder releases, so that the holder must hear of it
-- named    see call in line.lua
--
-- returns 1, {receivers, called, place}  released. receivers: as in unlock, 0 where the release was for the line alone (P37).
--                                        called: as call in line.lua returns it. place: the score of the ticket again, 0
--                                        without one
--         1, receivers                   the same, where nobody is in the line or release has not looked at the line
--         0, 0                           the hold is not there; 0, own: see remove in unlock.lua; if the lock is free the first client was called all the
--                                        same, or those who listen on the channel were told (P35)
--         nil, error
local function release(lock, line, _, field, channel, publish, again, known, named)
  local verdict, second = remove(lock, field)
  if verdict == 0 and redis.pcall('EXISTS', lock) == 0 and call(line, publish, 0, '', 0) == 0 then
    announce(channel, publish) -- a lease may have run out, or a call be lost; a late copy enters nobody
  end
  if verdict ~= 1 then
    return verdict, second
  end
  if not (again or second) then
    return 1, announce(channel, publish)
  end
  known = tonumber(known) or 0
  local place = again and again ~= '' and enter(line, again, '') or 0
  local called
  if known >= 0 and forLine(line, field) then
    called = call(line, publish, 0, field, 0, named)
    if called == 1 and not refused then
      return 1, {0, 1, place}
    end
  end
  local told = announce(channel, publish)
  called = called or call(line, publish, math.max(told, 0), field, math.max(known, 0), named)
  if refused and place ~= 0 then -- the client goes without the line from now on
    lined('ZREM', line, again)
    place = 0
  end
  if called == 0 and place == 0 then
    return 1, told
  end
  return 1, {told, called, place}
end
