-- A semaphore of n permits has the slots 0 to n - 1. Slot i is a plain lock of its own, with a counter of its own: the semaphore jobs has
-- the locks {jobs}:0 to {jobs}:4. A semaphore has no key but those and the line. The scripts know it by the lock of its last slot, and by the counter
-- of that, from which they make the names of the others.

-- slotsOf returns the name of a semaphore's slots without the number, and how many they are.
local function slotsOf(last)
  local base, number = string.match(last, '^(.*:)(%d+)$')
  return base, tonumber(number) + 1
end

-- takenOf returns how many of the slots from first to to are taken, or the error.
local function takenOf(base, first, to)
  local keys = {}
  for i = first, to do
    keys[#keys + 1] = base .. i
  end
  return redis.pcall('EXISTS', unpack(keys))
end

-- closed is that of one.lua, for a semaphore: 1 while all slots are taken.
local function closed(last)
  local base, n = slotsOf(last)
  local taken = takenOf(base, 0, n - 1)
  return type(taken) == 'table' and taken or taken == n and 1 or 0
end

-- writable is that of one.lua, for a semaphore. Somebody else's key at the last slot is taken, and no error.
local function writable(last, field)
  local written = redis.pcall('HDEL', last, field)
  if type(written) == 'table' and string.find(written.err, 'WRONGTYPE', 1, true) then
    return 0
  end
  return written
end

-- freeSlot returns the lowest slot that nobody has, found by halves as EXISTS counts; nil and maybe an error where none is free.
local function freeSlot(base, n)
  local from, to = 0, n - 1
  local taken = takenOf(base, from, to)
  if type(taken) == 'table' then
    return nil, taken
  elseif taken == n then
    return nil
  elseif taken == 0 then
    return 0
  end
  while from < to do
    local middle = math.floor((from + to) / 2)
    taken = takenOf(base, from, middle)
    if type(taken) == 'table' then
      return nil, taken
    end
    if taken <= middle - from then
      to = middle
    else
      from = middle + 1
    end
  end
  return from
end

-- shortest returns the time in milliseconds until the first of the slots comes free by itself; -1 for never.
local function shortest(last)
  local base, n = slotsOf(last)
  local least = -1
  for i = 0, n - 1 do
    local left = redis.pcall('PTTL', base .. i)
    if type(left) == 'number' and left >= 0 and (least < 0 or left < least) then
      least = left
    end
  end
  return least
end

-- beginSlot is begin of acquire.lua.
local beginSlot = begin

-- begin is that of acquire.lua, for a semaphore: it takes the lowest free slot. It returns 1, {token, slot}; or 0, -1 where none is free.
local function begin(last, counter, lease, field, expiry)
  local base, n = slotsOf(last)
  local slot, why = freeSlot(base, n)
  if not slot then
    if why then
      return nil, why
    end
    return 0, -1
  end
  local verdict, token = beginSlot(base .. slot, string.match(counter, '^(.*:)') .. slot, lease, field, expiry)
  return verdict, verdict and {token, slot} or token
end

-- confirm is that of acquire.lua, for a semaphore, all of whose slots are taken. It does not look for the field: a field is asked for once (P43),
-- and the release of an attempt looks through all slots.
--
-- It returns 0, a time for which no client looks, true.
local function confirm(last, _, _, field)
  local written = writable(last, field)
  if type(written) == 'table' then
    return nil, written
  end
  return 0, 600000, true
end

-- acquire is that of acquire.lua, for a semaphore.
local function acquire(last, counter, lease, field, expiry)
  local held = closed(last)
  if type(held) == 'table' then
    return nil, held
  elseif held == 1 then
    local verdict, left = confirm(last, counter, lease, field)
    return verdict, verdict and shortest(last) or left
  end
  return begin(last, counter, lease, field, expiry)
end

