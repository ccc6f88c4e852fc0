-- release releases a hold of a read-write lock, and calls the first client in the line if the lock is open to that.
--
-- lock     see readwrite.lua
-- line     zset of the clients that wait, see line.lua
-- field, channel, publish   see unlock in readwrite_unlock.lua
-- known    how many of the connections that listen on the channel are of the client that releases, 1 or 0; -1 where somebody else than the holder
--          releases, so that the holder must hear of it
--
-- returns 1, {receivers, called, 0}  released. receivers: as in unlock, 0 where the release was for the line alone (P37). called: as call in line.lua
--                                    returns it
--         1, receivers               the same, where nobody was called
--         0, 0                       the hold is not there. The first client was called all the same if the lock is open to it, or those who listen on
--                                    the channel were told of a lock that is free (P35)
--         nil, error
local function release(lock, line, _, field, channel, publish, known)
  known = tonumber(known)
  local verdict, message = remove(lock, field, known < 0)
  if verdict == 0 then
    local mode = modeOf(lock)
    if mode and forward(mode, line, publish) == 0 and mode == '' then
      announce(channel, publish, '1')
    end
    return 0, 0
  end
  if not verdict then
    return nil, message
  end
  if message == '' then
    return 1, known < 0 and announce(channel, publish, '0') or 0
  end
  local told, quiet = 0, known >= 0 and forLine(line, field)
  if not quiet then
    told = announce(channel, publish, message)
  end
  local head = lined('ZRANGE', line, 0, 0)[1]
  local own = head and string.sub(client(head), 1, -2) == client(field) -- a client's tickets to read and to write are as those of two clients
  local called = head and call(line, publish, math.max(told, 0), own and head or field, math.max(known, 0)) or 0
  if quiet and (called ~= 1 or refused) then -- nobody in the line has heard
    told = announce(channel, publish, message)
  elseif quiet and message == '1' and waitsToRead(lined('ZRANGE', line, 0, 0)[1] or '') then
    announce(channel, publish, message) -- a reader comes, beside whom outsiders may read, though it is not their turn (P37)
  end
  if called == 0 then
    return 1, told
  end
  return 1, {told, called, 0}
end
