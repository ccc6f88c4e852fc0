-- voteOutside does what voteInTurn (vote_in_turn.lua) does for a client that is not in the line and does not enter it. It has fewer
-- arguments: most acquires find nobody in the line.
--
-- lock, line, counter, lease, field, publish, look, token, first, ahead, slack, expiry, tokens   see voteInTurn
--
-- returns as voteInTurn does
local function voteOutside(lock, line, counter, lease, field, publish, look, token, first, ahead, slack, expiry, tokens)
  if redis.pcall('EXISTS', lock, line) == 0 then -- one command where nobody waits
    return grant(lock, counter, lease, field, nil, -2, token, first, ahead, slack, expiry, tokens)
  end
  return voteInTurn(lock, line, counter, lease, field, publish, '', '', look, '', '', '', token, first, ahead, slack, expiry, tokens)
end
