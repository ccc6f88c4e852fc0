-- inTurn does what wait, below, does for a user with all rights to the line. Where the user was refused one, inTurn may return 0 for a
-- free lock.
local function inTurn(lock, line, counter, lease, field, publish, ticket, place, look, stale, unproven, expiry, tokens)
  local held = closed(lock)
  if type(held) == 'table' then
    return nil, held
  end
  local left, head, calls, owned = -2, nil, true, nil
  if held > 0 then
    local verdict, value, second, of = confirm(lock, counter, lease, field, expiry, tokens, ticket ~= '')
    if verdict == 1 and ticket ~= '' then
      lined('ZREM', line, ticket)
    end
    if verdict ~= 0 then
      return verdict, value
    end
    left, calls, owned = value, second, of
  else
    local may
    may, head = mayTake(line, publish, ticket, place, look, stale)
    if refused then
      return 0, left
    end
    if may then
      local verdict, value = begin(lock, counter, lease, field, expiry, tokens)
      if verdict and head then
        taken(line, publish, ticket, look)
      end
      return verdict, value
    end
    local written = writable(lock, field)
    if type(written) == 'table' then
      return nil, written
    end
  end
  if ticket ~= '' and calls then -- a client that the release would not call does not enter (P36)
    local before, score = stand(line, publish, ticket, place, unproven, held > 0)
    if before then
      return 0, {left, before, score, head or '', owned}
    end
  end
  return 0, {left, -1, 0, head or '', owned}
end

-- wait takes a free lock for a new hold, as acquire (acquire.lua) does, if it is the turn of the client that asks. Otherwise
-- the client enters the line, if it has a ticket.
--
-- lock     hash: field <uuid>:<number> = hold count
-- line     zset of the clients that wait, see line.lua
-- counter  the fencing counter; nil for a lock without tokens
-- lease    milliseconds
-- field    <uuid>:<number> of the hold, never used for another hold
-- publish  PUBLISH, or SPUBLISH where the clients use sharded channels
-- ticket   of the client's stay in the line; '' for a client that does not enter
-- place    the score that the client had before and has lost; '' for none, see enter in line.lua
-- look     '1' from a client that looks because it has heard nothing for a while, or that does not wait: those before it are asked for a sign of life if
--          the lock is free
-- stale    a ticket that was called, as the client that asks has known for a while: if it is still the first one and the
--          lock is free, it is taken out of the line (P24); '' for none
-- unproven the line's name, from a client that has not been in a line so far: before it enters prove (line.lua) tries what the line takes;
--          otherwise ''
-- expiry, tokens   see take in token.lua
--
-- returns 1, token                        the hold has the lock; its latest token, 0 without a counter
--         0, {pttl, before, place, head, own}  the hold has not got the lock. pttl: milliseconds until the lock's key expires, -1
--                                         where it never does, -2 where the lock is free and another client is first in the
--                                         line. before: how many clients are before this one, at most 2, or -1 if this client
--                                         is not in the line. place: the score of its ticket, 0 for none. head: the first
--                                         ticket where the lock is free, otherwise ''. own: the field of the hold that has the
--                                         lock, where that is of the client that asks, otherwise not there
--         nil, error
local function wait(lock, line, counter, lease, field, publish, ticket, place, look, stale, unproven, expiry, tokens)
  local verdict, value = inTurn(lock, line, counter, lease, field, publish, ticket, place, look, stale, unproven, expiry, tokens)
  if refused and ticket ~= '' then
    lined('ZREM', line, ticket)
  end
  if refused and refused < 30 and verdict == 0 then
    local taken, left = acquire(lock, counter, lease, field, expiry, tokens)
    if taken == 0 and type(left) == 'table' then
      return 0, {left[1], -1, 0, '', left[2]}
    end
    return taken, left
  end
  return verdict, value
end
