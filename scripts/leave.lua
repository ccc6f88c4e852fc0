-- leave takes a ticket out of the line. Then, if the lock is free, leave calls the first client, and where there is none tells the
-- connections that listen on the lock's channel: the release may have told nobody but the line (P37). If the lock is held and the
-- ticket was in the line, leave tells the first two clients where they are, as nobody else does before the next release
-- (P31). A client that is called for a ticket which it has not got sends a leave too, with that ticket (P19). A leave
-- without a ticket goes on with a call that has reached its bound (P29).
--
-- lock     hash
-- line     zset of the clients that wait, see line.lua
-- ticket   '' for none
-- channel  redisson_lock__channel:{NAME}
-- publish  PUBLISH, or SPUBLISH where the clients use sharded channels
--
-- returns removed, called   removed: 1 if the ticket was in the line, otherwise 0; -2 where the user may not take it out. called: see
--                           call in line.lua; 0 where the lock is held
--         nil, error
local function leave(lock, line, _, ticket, channel, publish)
  local removed = lined('ZREM', line, ticket)
  if refused then
    return -2, 0 -- who calls the first client, while this ticket stays, is called for it, or finds it late (P24)
  end
  if type(removed) == 'table' then
    return nil, removed
  end
  local held = closed(lock)
  if type(held) == 'table' then
    return nil, held
  end
  if held == 0 then
    local called = call(line, publish, 0, '', 0)
    if called == 0 then
      announce(channel, publish)
    end
    return removed, called
  end
  if removed == 1 then
    near(line, publish)
  end
  return removed, 0
end
