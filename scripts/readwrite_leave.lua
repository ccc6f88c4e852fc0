-- leave takes a ticket out of the line of a read-write lock, and calls the first client if the lock is open to that: those who wait to read may have
-- waited behind one that was to write (P49). The rest is as in leave.lua.
--
-- lock     see readwrite.lua
-- the rest, and what is returned   see leave.lua
local function leave(lock, line, _, ticket, channel, publish)
  local removed = lined('ZREM', line, ticket)
  if refused then
    return -2, 0
  end
  if type(removed) == 'table' then
    return nil, removed
  end
  local mode, why = modeOf(lock)
  if not mode then
    return nil, why
  end
  local called, any = forward(mode, line, publish)
  if called > 0 then
    return removed, called
  end
  if mode == '' then
    announce(channel, publish, '1')
  elseif removed == 1 and any then
    near(line, publish)
  end
  return removed, 0
end
