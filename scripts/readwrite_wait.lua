-- proven takes those out of the line who wait to write before a client that reads, and for whom nobody listens (P55), up to the bound of P29.
--
-- asks  whether the first one for whom somebody listens is asked for a sign of life, which its own attempt for the lock is
--
-- returns the first ticket now, or nil
local function proven(mode, line, publish, ticket, asks)
  local head
  for _ = 1, 690 do
    head = lined('ZRANGE', line, 0, 0)[1]
    if not head or head == ticket or open(mode, waitsToRead(head)) or tell(line, publish, head, asks and 'n ' .. head or '') ~= 0 or refused then
      return head
    end
    if lined('ZREM', line, head) ~= 1 then -- of a replica
      return head
    end
  end
  return head
end

-- firstOf returns the first ticket in the line, or nil. Where the lock is open to the first client, and that may not know it, firstOf has that client called,
-- as mayTake in line.lua does. It takes the first client out of the line where that was called, or asked for a sign of life, and did not come.
--
-- returns head, asked  asked: the first client waits to write, keeps the second, which asks, from a lock that others read, and is asked for a sign of life
--                      (P55)
local function firstOf(mode, field, line, publish, ticket, look, stale)
  local heads = lined('ZRANGE', line, 0, 1)
  if heads.err then
    heads = {} -- a key of another type: then nobody waits in a line
  end
  local head = heads[1]
  if not head or head == ticket then
    return head
  end
  if not open(mode, waitsToRead(head)) then
    if not open(mode, reads(field)) then
      return head
    end
    if head == stale and lined('ZREM', line, head) == 1 then
      tell(line, publish, head, 'd ' .. head)
    end
    local asks = look == '1' and heads[2] == ticket
    local now = proven(mode, line, publish, ticket, asks)
    if now == head or now == ticket or not now or refused then
      return now, asks and now == head
    elseif open(mode, waitsToRead(now)) then
      return callFirst(line, publish, now)
    end
    near(line, publish)
    return now
  end
  if head == stale and lined('ZREM', line, head) == 1 then
    tell(line, publish, head, 'd ' .. head)
    head = heads[2]
  end
  if head and head ~= ticket and open(mode, waitsToRead(head)) and not refused and (look == '1' or #heads == 1 or heads[2] == ticket) then -- the second knows of the call
    return callFirst(line, publish, head)
  end
  return head
end

-- onward sees to those in the line after a hold has taken the lock: the next client that waits to read is called, and where the next one waits to
-- write the first two are told where they are (P49).
local function onward(field, line, publish, ticket, look)
  if not reads(field) then
    taken(line, publish, ticket, look)
    return
  end
  lined('ZREM', line, ticket)
  local called, any = forward('read', line, publish)
  if called == 0 and any then
    near(line, publish)
  end
end

-- inTurn does what wait, below, does for a user with all rights to the line. Where the user was refused one, inTurn may return 0 for a
-- lock that is open.
local function inTurn(lock, line, counter, lease, field, publish, ticket, place, look, stale, unproven, expiry)
  local mode, why = modeOf(lock)
  if not mode then
    return nil, why
  end
  if place ~= '' and ticket ~= '' then
    enter(line, ticket, place) -- a client that comes back may be the first again, or the second
  end
  local head, asked = firstOf(mode, field, line, publish, ticket, look, stale)
  if refused then
    return 0, -2
  end
  local mine = open(mode, reads(field))
  if mine and (not head or head == ticket) then
    local verdict, value = begin(mode, lock, counter, lease, field, expiry)
    if verdict and head then
      onward(field, line, publish, ticket, look)
    end
    return verdict, value
  end
  local left
  left, why = remaining(lock, field)
  if not left then
    return nil, why
  end
  local free = head and open(mode, waitsToRead(head)) -- to the first one
  left = free and -2 or left
  if ticket ~= '' then
    local before, score = stand(line, publish, ticket, place, unproven, not free)
    if before then
      return 0, {left, before, score, (free or asked and before == 1) and head or ''}
    end
  end
  return 0, {left, -1, 0, free and head or ''}
end

-- wait takes a read-write lock for a new hold, if it is open to the hold and it is the turn of the client that asks. Otherwise the client enters the
-- line, if it has a ticket. A client that reads takes its turn too, so that one that writes is not passed (P50).
--
-- lock, counter, lease, field, expiry   see acquire in readwrite.lua
-- the rest                              see wait in wait.lua
--
-- returns as wait in wait.lua does, without own. pttl: -2 where the lock is open to the first client in the line, otherwise milliseconds until the last
-- of the holds ends by itself. head: also where the asking client reads and is the second, the first one waits to write, others read, and the first one was
-- asked for a sign of life: if the second hears of none, the second names head as stale (P55)
local function wait(lock, line, counter, lease, field, publish, ticket, place, look, stale, unproven, expiry)
  local verdict, value = inTurn(lock, line, counter, lease, field, publish, ticket, place, look, stale, unproven, expiry)
  if refused and ticket ~= '' then
    lined('ZREM', line, ticket)
  end
  if refused and verdict == 0 then
    return acquire(lock, counter, lease, field, expiry)
  end
  return verdict, value
end
