-- wait takes a free lock for a new hold if it is its client's turn, as acquire does. Otherwise the client may enter the line.
--
-- lock     hash: field <uuid>:<number> = hold count
-- line     zset of the clients that wait, see line.lua
-- counter  the fencing counter; nil for a lock without tokens
-- lease    milliseconds
-- field    <uuid>:<number> of the hold, never used for another one
-- tokens   how many to take; the hold's own is the first of them
-- publish  PUBLISH, or SPUBLISH where the clients use sharded channels
-- ticket   of the client's stay in the line; '' for a client that does not enter
-- place    see enter
-- look     1 from a client that looks because nothing was heard for a while: the first one is called if the lock is free
-- stale    the ticket that was called the last time this client looked, a while ago; '' for none
-- expiry   of the counter, see take; nil for tokens without a floor
--
-- returns 1, token                        the hold has the lock; the last of its tokens, 0 without a counter
--         0, {pttl, before, place, head}  it has not. pttl is -1 where the key never expires, and -2 where the lock is free and
--                                         another client is first in the line. before: so many are before the client, 2 for
--                                         more, -1 if it is not in the line. place: its score. head: who is first, if that
--                                         is known
local function wait(lock, line, counter, lease, field, tokens, publish, ticket, place, look, stale, expiry)
  local held
  if ticket == '' then
    held = redis.pcall('EXISTS', lock, line) -- one command where nobody waits
    if held == 0 then
      return begin(lock, counter, lease, field, tokens, expiry)
    end
  end
  if ticket ~= '' or held == 1 then
    held = redis.pcall('EXISTS', lock)
  end
  if type(held) == 'table' then
    return nil, held
  end
  local left, head, calls = -2, nil, true
  if held > 0 then
    local verdict, value, second = confirm(lock, counter, lease, field, tokens, expiry, ticket ~= '')
    if verdict == 1 and ticket ~= '' then
      redis.pcall('ZREM', line, ticket)
    end
    if verdict ~= 0 then
      return verdict, value
    end
    left, calls = value, second
  else
    if place ~= '' and ticket ~= '' then
      enter(line, ticket, place) -- who comes back may be the first again, or the second
    end
    local heads = redis.pcall('ZRANGE', line, 0, 1)
    if heads.err then
      heads = {} -- without the right to it, or where something else is there, nobody waits in a line
    end
    head = heads[1]
    if head and head == stale and head ~= ticket and redis.pcall('ZREM', line, head) == 1 then
      tell(line, publish, head, 'd ' .. head)
      head = heads[2]
    end
    if head and head ~= ticket and (look == '1' or #heads == 1 or heads[2] == ticket) then -- the second knows that it is called
      head = call(line, publish, 0, '', 0) > 0 and redis.pcall('ZRANGE', line, 0, 0)[1] or nil
    end
    if not head or head == ticket then
      local verdict, value = begin(lock, counter, lease, field, tokens, expiry)
      if verdict and heads[1] then
        redis.pcall('ZREM', line, ticket)
        if look == '1' then -- it was not called: nobody watches it, or knows when its lease ends
          near(line, publish)
        end
      end
      return verdict, value
    end
    local written = redis.pcall('HDEL', lock, field) -- of nothing: a replica answers READONLY and not "it is another's turn"
    if type(written) == 'table' then
      return nil, written
    end
  end
  if ticket ~= '' and calls then -- nobody enters whom the release would not call
    local score, before, there = enter(line, ticket, place)
    if score then
      if there and before == 0 and held > 0 then
        local second = redis.pcall('ZRANGE', line, 1, 1)[1]
        if second then
          tell(line, publish, second, 'a ' .. second)
        end
      end
      return 0, {left, before, score, head or ''}
    end
  end
  return 0, {left, -1, 0, head or ''}
end

local verdict, value = wait(KEYS[1], KEYS[2], KEYS[3], unpack(ARGV))
return verdict and {verdict, value} or value
