-- leave takes a ticket out of the line. If the lock is free it calls the first client then; otherwise it tells the first two
-- where they are, as nobody else does before the next release. It is also what a client answers that was called for a ticket
-- which it does not have, and, without a ticket, what goes on with a call that has reached its bound.
--
-- lock     hash
-- line     zset of the clients that wait, see line.lua
-- ticket   '' for none
-- publish  PUBLISH, or SPUBLISH where the clients use sharded channels
--
-- returns removed (1, 0), called   see call
local function leave(lock, line, _, ticket, publish)
  local removed = redis.pcall('ZREM', line, ticket)
  if type(removed) == 'table' then
    return nil, removed
  end
  local held = redis.pcall('EXISTS', lock)
  if type(held) == 'table' then
    return nil, held
  end
  if held == 0 then
    return removed, call(line, publish, 0, '', 0)
  end
  if removed == 1 then
    near(line, publish)
  end
  return removed, 0
end

local verdict, value = leave(KEYS[1], KEYS[2], nil, unpack(ARGV))
return verdict and {verdict, value} or value
