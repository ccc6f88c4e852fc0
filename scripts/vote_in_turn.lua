-- askInTurn does what voteInTurn, below, does for a user with all rights to the line. Where the user was refused one, askInTurn may
-- return 0 for a free lock.
local function askInTurn(lock, line, counter, lease, field, publish, ticket, place, look, stale, unproven, gone, token, first, ahead, slack, expiry, tokens)
  local there, left = heldHere(lock, field, gone)
  if there == false then
    return nil, left
  end
  local head, holder, calls = nil, '', true
  if there == 0 then
    local verdict, value, second = confirm(lock, nil, lease, field, nil, nil, ticket ~= '')
    if verdict ~= 0 then
      return nil, value
    end
    left, calls, holder = value, second, holding(lock)
  else
    local may = there == 1
    if not may then
      may, head = mayTake(line, publish, ticket, place, look, stale)
    end
    if refused then
      return 0, nil
    end
    if may then
      local verdict, said = grant(lock, counter, lease, field, there, left, token, first, ahead, slack, expiry, tokens)
      if verdict and ticket ~= '' and (head or there) then
        taken(line, publish, ticket, look)
      end
      return verdict, said
    end
    local written = redis.pcall('HDEL', lock, field) -- removes nothing, but a replica answers READONLY and not "it is another client's turn"
    if type(written) == 'table' then
      return nil, written
    end
  end
  local before, score
  if ticket ~= '' and calls then -- a client that the release would not call does not enter (P36)
    before, score = stand(line, publish, ticket, place, unproven, there == 0)
  end
  return 0, {left, holder, '0', '0', '0', '', '0', '', before or -1, score or 0, head or ''}
end

-- voteInTurn votes, as vote (vote.lua) does, on the home of a lock, which is the server of a quorum that has the lock's line. A free lock
-- goes to the hold if it is the turn of the client that asks. Otherwise the client enters the line, if it has a ticket.
--
-- lock, counter, lease, field, gone, token, first, ahead, slack, expiry, tokens   see vote in vote.lua
-- line, publish, ticket, place, look, stale, unproven                             see wait in wait.lua
--
-- returns as vote does; but 0, {pttl, holder, '0', '0', '0', '', '0', '', before, score, head}: the hold has not got the lock.
--         pttl, before, score (there: place) and head are those of wait, holder that of report.lua
local function voteInTurn(lock, line, counter, lease, field, publish, ticket, place, look, stale, unproven, gone, token, first, ahead, slack, expiry, tokens)
  local verdict, said = askInTurn(lock, line, counter, lease, field, publish, ticket, place, look, stale, unproven, gone, token, first, ahead, slack, expiry, tokens)
  if refused and ticket ~= '' then
    lined('ZREM', line, ticket)
  end
  if refused and refused < 30 and verdict == 0 then
    return vote(lock, counter, lease, field, gone, token, first, ahead, slack, expiry, tokens)
  end
  return verdict, said
end
