-- A client is asked for a sign of life, which its next attempt is, by those who find the lock free and would come after it. Redis keeps since when: who has not
-- come within its time is out of the line, whoever looks next (P24). The score of its ticket is place * 2^43 + 2 * since + came. since: the server's time in
-- milliseconds. came: 1 once the client has come, or a release has called it. place: from -1024 on, so that those who were asked come before those who were not,
-- in their order.
local step, most = 8796093022208, 8

-- A client that has come is asked again so many milliseconds after it was asked, and not before: others may try as often as they like.
local lately = 50

-- askedAt returns since when the client of a ticket with this score has been asked, and whether it has come since; nil for one that was not asked.
local function askedAt(score)
  if tonumber(score) >= 0 then
    return nil
  end
  local rest = score % step
  return math.floor(rest / 2), rest % 2 == 1
end

-- comesWithin returns how many milliseconds the client of a ticket may take to come. One that is far from Redis says so in its ticket.
local function comesWithin(ticket)
  return math.min(math.max(tonumber(string.match(ticket, '^[^:]*:[^:]*:(%d+)$') or 0), 100), 1000)
end

-- clock returns the server's time in milliseconds, or nil.
local function clock()
  local now = lined('TIME')
  return not now.err and now[1] * 1000 + math.floor(now[2] / 1000) or nil
end

-- awaited tells whether a client that was asked has not come, and has time left. late: it has not come, and has none. Where the clock was set back it has none.
local function awaited(ticket, score, now)
  local since, came = askedAt(score)
  if not since or came or not now then
    return false
  end
  local late = math.abs(now - since) >= comesWithin(ticket)
  return not late, late
end

-- headOf returns the first ticket, or nil. Before that it takes out of the line the first ones who were asked, and have not come within their time.
--
-- ticket  of the client that asks, which is not taken out
-- look    see wait in wait.lua
-- stale   a ticket whose client has no time left, as the client that asks knows; '' for none
--
-- returns head, asks   asks: this client has those before it asked, as the first one is not awaited. Others leave that to the second, which knows of the call
--                      of a release
local function headOf(line, publish, ticket, look, stale)
  local now
  while true do
    local two = lined('ZRANGE', line, 0, 1, 'WITHSCORES')
    local head, second = two[1], two[3] -- nil also for a key of another type: then nobody waits in a line
    if not head or head == ticket then
      return head, false
    end
    now = now or askedAt(two[2]) and clock()
    local waits, late = awaited(head, two[2], now)
    if not (late or head == stale) or lined('ZREM', line, head) ~= 1 then
      return head, not (waits or refused) and (look == '1' or not second or second == ticket)
    end
    tell(line, publish, head, 'd ' .. head)
  end
end

-- ask has the clients before the one with this ticket asked for a sign of life, the first ones. Those that have come lately, or are awaited, are not asked again.
-- Whom nobody listens for it takes out of the line. A server that refuses to write, as a replica does, asks nobody: who was asked would ask that server at once,
-- and be refused.
--
-- returns the first ticket then, or nil
local function ask(line, publish, ticket)
  local now = type(lined('ZREM', line, '')) == 'number' and clock()
  for _ = 1, 86 do -- 690 tickets at most are passed (P29)
    local some, marks, gone = lined('ZRANGE', line, 0, most - 1, 'WITHSCORES'), {}, {}
    for i = 1, now and #some or 0, 2 do
      local other, score = some[i], some[i + 1]
      if other == ticket then
        break
      end
      local since, came = askedAt(score)
      local asked = not (awaited(other, score, now) or came and math.abs(now - since) < lately)
      if asked and tell(line, publish, other, 's ' .. other) == 0 then
        gone[#gone + 1] = other
      else
        marks[#marks + 1] = string.format('%.0f', (#marks / 2 - 1024) * step + (asked and 2 * now or score % step))
        marks[#marks + 1] = other
      end
    end
    if #gone > 0 then
      lined('ZREM', line, unpack(gone))
    end
    if #marks > 0 then
      lined('ZADD', line, 'XX', unpack(marks))
    end
    if #gone == 0 or #marks > 0 or refused then
      break
    end
  end
  return lined('ZRANGE', line, 0, 0)[1]
end

-- mayTake tells whether a client may take the free lock: it is the first in the line, or nobody is in the line. Otherwise mayTake has those before the client
-- asked who may not know that the lock is free.
--
-- ticket, place, look, stale   see wait in wait.lua
--
-- returns may, head   head: the first ticket, or nil
local function mayTake(line, publish, ticket, place, look, stale)
  if place ~= '' and ticket ~= '' then
    enter(line, ticket, place) -- a client that comes back may be the first again, or the second
  end
  local head, asks = headOf(line, publish, ticket, look, stale)
  if asks then
    head = ask(line, publish, ticket)
  end
  return not head or head == ticket, head
end

-- taken takes the ticket out of the line, as its client has the lock.
local function taken(line, publish, ticket, look)
  lined('ZREM', line, ticket)
  if look == '1' then -- this client was not called: nobody watches it, or knows when its lease ends (P32)
    near(line, publish)
  end
end

-- stand has a client enter the line that has not got the lock. held: somebody else has the lock.
--
-- ticket, place, unproven   see wait in wait.lua
--
-- returns before, score   as wait does; nil where the client could not enter
local function stand(line, publish, ticket, place, unproven, held)
  if unproven ~= '' then
    prove(line, publish, ticket, unproven)
  end
  if refused then
    return nil
  end
  local score, before, there = enter(line, ticket, place)
  if not score then
    return nil
  end
  local asked, came = askedAt(score)
  if asked and not came then
    score = string.format('%.0f', score + 1)
    lined('ZADD', line, 'XX', score, ticket)
  end
  if not there and before == 0 and held then
    redis.pcall(publish, line .. ':waited', '') -- to the holder, if that has asked to be told; who may not say it enters all the same
  end
  if there and before == 0 and held then
    local second = lined('ZRANGE', line, 1, 1)[1]
    if second then
      tell(line, publish, second, 'a ' .. second)
    end
  end
  return before, score
end

