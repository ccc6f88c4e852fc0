-- release releases a hold, as unlock does, and calls the first client in the line. It is also what forces a lock open, given
-- the field of the hold that was seen there.
--
-- lock     hash
-- line     zset of the clients that wait, see line.lua
-- counter  the fencing counter, where tokens are given back that were reserved for the hold; nil otherwise
-- field, channel, publish, last, unused   see unlock
-- again    a ticket for the client's next stay in the line, where more of its callers wait; '' for none. nil: nobody waited when
--          the hold took the lock, and so nobody is to be called unless the hold has got its second field, see confirm
-- known    how many of those who listen on the channel are the client itself, 1 or 0; nil for 0
--
-- returns 1, {receivers, called, place}  released; receivers as in unlock, called as in call, place: the score of the ticket, 0
--                                        without one
--         1, receivers                   the same, where nobody is in the line
--         0, 0                           the hold is not there; if the lock is free the first one was called all the same
local function release(lock, line, counter, field, channel, publish, last, unused, again, known)
  local verdict, told, second = unlock(lock, counter, field, channel, publish, last, unused)
  if verdict == 0 and redis.pcall('EXISTS', lock) == 0 then
    call(line, publish, 0, '', 0) -- a lease has run out, or a message was lost; a late copy enters nobody
  end
  if verdict ~= 1 or not (again or second) then
    return verdict, told
  end
  local place = again and again ~= '' and enter(line, again, '') or 0
  local called = call(line, publish, math.max(told, 0), field, tonumber(known) or 0)
  if called == 0 and place == 0 then
    return 1, told
  end
  return 1, {told, called, place}
end

local verdict, value = release(KEYS[1], KEYS[2], KEYS[3], unpack(ARGV))
return verdict and {verdict, value} or value
