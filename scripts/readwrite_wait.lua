-- listening takes those out of the line who wait to write before a client that reads, and for whom nobody listens (P55), up to the bound of P29. It returns the
-- first ticket then, or nil.
local function listening(mode, line, publish, ticket, head)
  for _ = 1, 690 do
    if not head or head == ticket or open(mode, waitsToRead(head)) or tell(line, publish, head, '') ~= 0 or lined('ZREM', line, head) ~= 1 then
      return head
    end
    head = lined('ZRANGE', line, 0, 0)[1]
  end
  return head
end

-- firstOf returns the first ticket in the line, or nil. Where the lock is open to the first client, or to the client that asks, who reads beside others, firstOf takes
-- out those before that client who were asked and did not come, and has the others asked, as mayTake in turn.lua does (P24, P55).
--
-- returns head, kept  kept: the first client waits to write, and keeps the client that asks from a lock that others read
local function firstOf(mode, field, line, publish, ticket, look, stale)
  local head, asks = lined('ZRANGE', line, 0, 0)[1], false
  if not head or head == ticket or not open(mode, waitsToRead(head)) and not open(mode, reads(field)) then
    return head
  end
  head, asks = headOf(line, publish, ticket, look, stale)
  local now = listening(mode, line, publish, ticket, head)
  if now and now ~= head and now ~= ticket and not refused then -- who is the first now may not know it
    local called, any = forward(mode, line, publish)
    if called == 0 and any then
      near(line, publish)
    end
    now = lined('ZRANGE', line, 0, 0)[1]
  elseif now and asks then
    now = ask(line, publish, ticket)
  end
  head = now
  return head, head and head ~= ticket and mode == 'read' and reads(field) and not waitsToRead(head)
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
  local head, kept = firstOf(mode, field, line, publish, ticket, look, stale)
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
      return 0, {left, before, score, (free or kept) and head or ''}
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
-- of the holds ends by itself. head: also where the asking client reads, others do, and the first one waits to write (P55)
local function wait(lock, line, counter, lease, field, publish, ticket, place, look, stale, unproven, expiry)
  local verdict, value = inTurn(lock, line, counter, lease, field, publish, ticket, place, look, stale, unproven, expiry)
  if refused and ticket ~= '' then
    lined('ZREM', line, ticket)
  end
  if refused and refused < 30 and verdict == 0 then
    return acquire(lock, counter, lease, field, expiry)
  end
  return verdict, value
end
