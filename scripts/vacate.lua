-- removeAny takes a hold out of whatever slots of the semaphore it has, and returns whether it had any, or nil and the error.
local function removeAny(last, field)
  local base, n = slotsOf(last)
  local had = false
  for i = 0, n - 1 do
    local removed = redis.pcall('HDEL', base .. i, field, field .. '#')
    if type(removed) == 'number' then
      had = had or removed > 0
    elseif not string.find(removed.err, 'WRONGTYPE', 1, true) then -- somebody else's key, which no hold is in
      return nil, removed
    end
  end
  return had
end

-- vacate releases the hold of an attempt for a permit that has no answer: nobody knows which slot it has, or whether it has any. Then it calls the
-- first client in the line, if a slot is free.
--
-- last     hash of the last slot: see slots.lua
-- line     zset of the clients that wait for a permit, see line.lua
-- field    <uuid>:<number> of the hold
-- channel  on which those who are in no line hear of a release
-- publish  PUBLISH, or SPUBLISH where the clients use sharded channels
--
-- returns 1, {receivers, called, 0}  released. As release (release.lua) does
--         0, 0                       the hold is not there
--         nil, error
local function vacate(last, line, _, field, channel, publish)
  local had, why = removeAny(last, field)
  if why then
    return nil, why
  end
  local called = closed(last) == 0 and call(line, publish, 0, '', 0) or 0
  local told = had and called == 0 and announce(channel, publish) or 0
  if had then
    return 1, {told, called, 0}
  end
  return 0, 0
end
