-- others sees to those who wait for a permit, after an attempt for one.
--
-- returns verdict, value: those of wait (wait.lua)
local function others(last, line, publish, verdict, value)
  if verdict == 1 and closed(last) == 0 then
    call(line, publish, 0, '', 0) -- several slots may have come free at once, and be told of once (P44)
  elseif verdict == 0 and type(value) == 'table' and value[1] ~= -2 and value[2] < 2 and value[2] >= 0 then
    value[1] = shortest(last) -- the first two look when it is over (P32)
  end
  return verdict, value
end

-- permit takes any free slot of a semaphore for a new hold, if it is the turn of the client that asks. Otherwise the client enters the line, if
-- it has a ticket.
--
-- last      hash of the last slot: see slots.lua
-- line      zset of the clients that wait for a permit, see line.lua
-- counter   the fencing counter of the last slot
-- the rest  see wait (wait.lua)
--
-- returns 1, {token, slot}              the hold has this slot, and this token
--         0, {pttl, before, place, head}   as wait does. pttl: of the first two in the line the time until the first of the slots comes free by
--                                       itself, otherwise ten minutes; -2 where a slot is free and it is another client's turn
--         nil, error
local function permit(last, line, counter, lease, field, publish, ticket, place, look, stale, unproven, expiry)
  return others(last, line, publish, wait(last, line, counter, lease, field, publish, ticket, place, look, stale, unproven, expiry))
end
