-- The line of the clients that wait for a lock: a sorted set in the lock's slot. A member is a ticket, <client>:<number>, made
-- for one stay of one client in the line and never used again. The score is the order of arrival. Each client listens on a
-- channel of its own, <line>:<client>, where it is told, about its ticket:
--
--   c TICKET others length   it is called: the lock is free, and it is the first of so many in the line. So many connections
--                            heard of the release on the lock's own channel, without the one of the client that released it
--   w TICKET head            it is the second, and this head was called: if the head does not come, it is to look
--   w TICKET head 1          the same, after a release: what it knew of an earlier call of this head counts no more
--   n TICKET                 it is the first or the second since a client has left the line, and the lock is held
--   a TICKET                 it is the second, and the first has just asked for the lock, which somebody else has: it is alive
--   d TICKET                 it was taken out of the line, as it was called and did not come

-- client is the client that a ticket, or the field of a hold, belongs to.
local function client(ticket)
  return string.match(ticket, '^[^:]*')
end

-- tell sends a message to the client that has the ticket, and returns how many connections were told, or the error.
local function tell(line, publish, ticket, message)
  return redis.pcall(publish, line .. ':' .. client(ticket), message)
end

-- call tells the first client in the line that the lock is free, and the second one to watch the first. Clients that nobody
-- listens for are taken out of the line, up to a bound. It never fails: the lock has been released already.
--
-- line     zset
-- publish  PUBLISH, or SPUBLISH where the clients use sharded channels
-- told     how many connections were told on the lock's own channel
-- field    of the hold that was released; '' for none
-- known    how many of those who were told are the client that had the hold: 1 or 0
--
-- returns 1  the first one was called
--         0  nobody is in the line, or the user has no right to the line or to the channels
--         2  the bound was reached: call again
local function call(line, publish, told, field, known)
  local dead, batch = {}, 1
  for _ = 1, 5 do -- 2, 8, 32, 128 and 512 tickets
    batch = batch == 1 and 2 or batch * 4
    local heads = redis.pcall('ZRANGE', line, #dead, #dead + batch - 1)
    if heads.err or #heads == 0 then
      batch = 0
      break
    end
    for i, head in ipairs(heads) do
      local others = client(head) == client(field) and told or math.max(told - known, 0)
      local length = others > 0 and redis.pcall('ZCARD', line) or 0 -- which is of interest only then
      length = type(length) == 'number' and math.max(length - #dead, 0) or 0
      local heard = tell(line, publish, head, 'c ' .. head .. ' ' .. others .. ' ' .. length)
      if type(heard) == 'table' then
        return 0
      end
      if heard > 0 then
        local second = heads[i + 1]
        if i == batch then -- which was not read with the first
          second = redis.pcall('ZRANGE', line, #dead + 1, #dead + 1)[1]
        end
        if #dead > 0 then
          redis.pcall('ZREM', line, unpack(dead))
        end
        if second then
          tell(line, publish, second, 'w ' .. second .. ' ' .. head .. (field ~= '' and ' 1' or ''))
        end
        return 1
      end
      dead[#dead + 1] = head
    end
  end
  if #dead > 0 then
    redis.pcall('ZREM', line, unpack(dead))
  end
  return batch == 0 and 0 or 2
end

-- near tells the first two in the line where they are, as nobody else does before the next release.
local function near(line, publish)
  local heads = redis.pcall('ZRANGE', line, 0, 1)
  for _, head in ipairs(heads.err and {} or heads) do
    tell(line, publish, head, 'n ' .. head)
  end
end

-- enter puts a ticket at the end of the line, or where it was. A repeat changes nothing.
--
-- line    zset
-- ticket  <client>:<number>
-- place   the score that the client had in a line that was lost; '' for the end
--
-- returns score, before, there  how many are before it, 2 for more; whether it was in the line already
--         nil, error
local function enter(line, ticket, place)
  local last = redis.pcall('ZRANGE', line, -2, -1, 'WITHSCORES')
  if last.err then
    return nil, last
  end
  local score
  if #last == 0 then
    local now = redis.pcall('TIME')
    if now.err then
      return nil, now
    end
    score = now[1] * 1000000 + now[2]
  else
    score = last[#last] + 1 -- not the clock, which may be set back: a newcomer would be first
  end
  if place ~= '' then
    score = math.min(score, tonumber(place))
  end
  local text = string.format('%.0f', score)
  local added = redis.pcall('ZADD', line, 'NX', text, ticket)
  if type(added) == 'table' then
    return nil, added
  end
  if #last == 0 or added == 0 or place ~= '' or score % 16 == 0 then
    local expires = redis.pcall('PEXPIRE', line, 600000)
    if type(expires) == 'table' and #last == 0 then -- refused, to a user without the right to it
      redis.pcall('ZREM', line, ticket)
      return nil, expires
    end
  end
  if added == 1 and place == '' then
    return text, #last / 2
  end
  local there = redis.pcall('ZSCORE', line, ticket)
  local rank = redis.pcall('ZRANK', line, ticket)
  return string.format('%.0f', tonumber(there) or score), math.min(tonumber(rank) or 2, 2), added == 0
end

