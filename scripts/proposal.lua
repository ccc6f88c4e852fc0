-- accepts tells which of two proposed tokens a server of a quorum takes in the step in which a hold gets the lock there. The client
-- may have come to its proposals in any way: the server goes by its own counter and clock alone (quorum/doc.go, Tokens).
--
-- last    the counter: the largest token that was accepted here, '0' where there is none
-- now     the server's time in microseconds
-- token   what is proposed to a server that has a counter, '0' for nothing
-- first   what is proposed to a server that has none, '0' for nothing
-- ahead   microseconds: a token without a counter is so far ahead of the server's time, as a counter may have been forgotten
-- slack   microseconds: a proposal is at most so far ahead of that
-- tokens  how many the hold takes: what is proposed is the last of them; nil for one
--
-- returns the token, or nil
local function accepts(last, now, token, first, ahead, slack, tokens)
  local counter, proposed, more = tonumber(last), tonumber(token), (tokens or 1) - 1
  if counter == 0 then
    local beyond = tonumber(first) - now - ahead
    return beyond >= more and beyond <= tonumber(slack) and first or nil
  end
  local least = proposed - more
  local fits = least > counter and least >= now and (proposed <= now + slack or least == counter + 1 and more <= 32)
  return fits and token or nil
end

-- accept sets the counter of a server of a quorum to a token that it has accepted. The counter expires so many milliseconds after the
-- server's time, now, has reached the token, or never for 0. It returns true, or nil and an error.
local function accept(counter, token, now, expiry)
  local set
  if tonumber(expiry) > 0 then
    local ahead = math.max(tonumber(token) - now, 0) / 1000
    set = redis.pcall('SET', counter, token, 'PX', string.format('%.0f', expiry + ahead))
  else
    set = redis.pcall('SET', counter, token)
  end
  if set.err then
    return nil, set
  end
  return true
end
