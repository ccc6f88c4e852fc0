-- The line of the clients that wait for a lock is a sorted set in the lock's slot. A member is a ticket, <client>:<number>,
-- made for one stay of one client in the line and never used again (P18). The score is the order of arrival; that of a client which was asked to come is
-- below zero (turn.lua). Each client
-- listens on a channel of its own, <line>:<client>. On that channel the scripts tell the client about its ticket:
--
--   c TICKET others   the client is called: the lock is free, and the client is the first in the line. others: how many
--                     connections heard of the release on the lock's own channel, without the one of the client that
--                     released the lock, unless the called client is that client
--   c TICKET others FIELD TOKEN   the same, on the home of a lock of a quorum (P40): the hold of this field was released by its holder,
--                     and the latest token that the holder knows is this one, 0 for none
--   w TICKET head     the client is the second, and the first, which has the ticket head, was called (P23): if the first does
--                     not come, the client is to look
--   w TICKET head 1   the same, after a release: an earlier call of head that the client knows of counts no more
--   n TICKET          a client has left the line, this client is the first or the second now, and the lock is held
--   a TICKET          the client is the second. The first has just asked for the lock, which somebody else has: the first is
--                     alive
--   s TICKET          the client is to ask for the lock now, as a sign of life: if it does not, it is taken out of the line
--   d TICKET          the ticket was taken out of the line, as the client was called, or asked for a sign of life, and did not come
--
-- On the channel <line>:waited a holder that wants to know listens: a client that enters an empty line while the lock is held says so there.

-- refused is why the operation goes on without the line (P30), and how much more its verdict is then: 10 once the user was refused a command
-- of the line, for the command itself, the line's key or a client's channel, or the server does not do the command in scripts; 20 where the client knows the line by another name; 30 where the
-- server does not count the client among those who listen (P33). With 30 the attempt takes no lock out of turn: it may be a late one, of a client that has gone.
local refused = false

-- lined does a command of the line, and returns its reply, or the error.
local function lined(...)
  local reply = redis.pcall(...)
  local why = type(reply) == 'table' and reply.err
  -- the words of Redis and Valkey for want of a right, and of several servers for what they do not do in scripts
  for _, words in ipairs(not why and {} or {'ACL failure', "user executing the script can't", 'NOPERM', 'nknown', 'not allowed from script', 'is disabled'}) do
    if string.find(why, words, 1, true) then
      refused = 10
    end
  end
  return reply
end

-- client returns the id of the client that a ticket, or the field of a hold, belongs to.
local function client(ticket)
  return string.match(ticket, '^[^:]*')
end

-- tell sends a message to the client that has the ticket. It returns how many connections were told, or the error.
local function tell(line, publish, ticket, message)
  return lined(publish, line .. ':' .. client(ticket), message)
end

-- call tells the first client in the line that the lock is free, and the second client to watch the first: the first two for which
-- somebody listens. It takes out of the line the tickets before them, up to a bound (P29). call never fails: the lock is free already.
--
-- line     zset
-- publish  PUBLISH, or SPUBLISH where the clients use sharded channels
-- told     how many connections were told on the lock's own channel
-- field    of the hold that was released; '' for none
-- known    how many of the told connections are of the client that had the hold: 1 or 0
-- named    what else the called client is told; nil for nothing
--
-- returns 1  a client was called
--         0  nobody is in the line, or the user has no right to the line or to the channels
--         2  the bound was reached: call again
local function call(line, publish, told, field, known, named)
  local dead, first, second, batch, from = {}, nil, nil, 2, 0
  repeat -- 2, 8, 32, 128 and 512 tickets, and a few more for the second
    local heads = lined('ZRANGE', line, from, from + batch - 1, 'WITHSCORES')
    if heads.err then
      break
    end
    for i = 1, #heads, 2 do
      local ticket, message = heads[i], nil
      if first then
        message = 'w ' .. ticket .. ' ' .. first .. (field ~= '' and ' 1' or '')
      else
        message = 'c ' .. ticket .. ' ' .. (client(ticket) == client(field) and told or math.max(told - known, 0)) .. (named or '')
      end
      local heard = tell(line, publish, ticket, message)
      if heard == 0 then
        dead[#dead + 1] = ticket
      elseif first then
        second = ticket
        break
      elseif type(heard) == 'table' then
        return 0
      else
        first = ticket
        local score = tonumber(heads[i + 1])
        if field ~= '' and score < 0 and score % 2 == 0 then -- that it was asked before the release counts no more (turn.lua)
          lined('ZADD', line, 'XX', string.format('%.0f', score + 1), ticket)
        end
      end
    end
    local more = #heads == 2 * batch
    from, batch = from + batch, first and 2 or batch * 4
  until second or not more or from >= (first and 690 or 682)
  if #dead > 0 then
    lined('ZREM', line, unpack(dead))
  end
  if first then
    return 1
  end
  return (#dead >= 682 and not refused) and 2 or 0 -- tickets that cannot be taken out are not passed again and again
end

-- forLine tells whether a release is for the clients in the line alone (P37). Otherwise the release also tells the outsiders, who listen
-- on the lock's own channel and are in no line. With n clients in the line, two or more, the outsiders are told of one release in n + 1:
-- they count as one more client. A lone client in the line has nobody to watch it, so with fewer than two clients the outsiders are told
-- of every release. Which release it is, a hash of the hold's field decides: no two holds have the same field.
local function forLine(line, field)
  local waiting = lined('ZCARD', line)
  return type(waiting) == 'number' and waiting > 1 and tonumber(string.sub(redis.sha1hex(field), 1, 6), 16) % (waiting + 1) > 0
end

-- near tells the first two clients in the line where they are, as nobody else does before the next release.
local function near(line, publish)
  local heads = lined('ZRANGE', line, 0, 1)
  for _, head in ipairs(heads.err and {} or heads) do
    tell(line, publish, head, 'n ' .. head)
  end
end

-- enter puts a ticket at the end of the line, or at the place that the client had before. A repeat changes nothing.
--
-- line    zset
-- ticket  <client>:<number>
-- place   the score that the client had before and has lost (P22); '' for the end
--
-- returns score, before, there  score: the ticket's. before: how many tickets are before it, at most 2. there: true if the
--                               ticket was in the line already
--         nil, error
local function enter(line, ticket, place)
  local last = lined('ZRANGE', line, -2, -1, 'WITHSCORES')
  if last.err then
    return nil, last
  end
  local score = #last > 0 and last[#last] + 1 or -1 -- and not the clock: that may be set back, and a newcomer be first (P21)
  if score < 0 then -- the line is empty, or all who are in it were asked (turn.lua): who comes now was not
    local now = lined('TIME')
    if now.err then
      return nil, now
    end
    score = now[1] * 1000000 + now[2]
  end
  if place ~= '' then
    score = math.min(score, tonumber(place))
  end
  local text = string.format('%.0f', score)
  local added = lined('ZADD', line, 'NX', text, ticket)
  if type(added) == 'table' then
    return nil, added
  end
  if #last == 0 or added == 0 or place ~= '' or score % 16 == 0 then
    lined('PEXPIRE', line, 600000) -- who may not do this is taken out again by wait or release: a line that never expires must not stay
  end
  if added == 1 and place == '' then
    return text, #last / 2
  end
  local there = lined('ZSCORE', line, ticket)
  local rank = lined('ZRANK', line, ticket)
  return string.format('%.0f', tonumber(there) or score), math.min(tonumber(rank) or 2, 2), added == 0
end

-- prove tries what the line takes later than at the entry: a client that could not be called, or not leave, is not to enter (P30), nor one that
-- listens and is not counted, which the next release would take for dead (P33). name is that of the line as the client knows it, and the
-- beginning of the channel on which the client listens.
local function prove(line, publish, ticket, name)
  if name ~= line then
    refused = 20
    return
  end
  for _, command in ipairs({'ZREM', 'ZRANK', 'ZSCORE'}) do
    lined(command, line, '')
  end
  lined('ZCARD', line)
  if tell(line, publish, ticket, '') == 0 and not refused then
    refused = 30
  end
  if not refused then -- otherwise who may not enter would have a line last that nobody may leave
    lined('PEXPIRE', line, 600000)
  end
end
