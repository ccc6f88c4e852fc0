-- heldHere tells whether a lock is held on one server of a quorum. It drops a hold that was given up: the release of that hold may
-- be under way still, and finds a key that says that the hold was dropped (P40).
--
-- lock, field, gone   see vote
--
-- returns there, left   there: 1 if the hold of this field has the lock, 0 if another has it, nil for nobody. left: the PTTL of the
--                       lock's key in milliseconds
--         false, error
local function heldHere(lock, field, gone)
  local exists = redis.pcall('EXISTS', lock)
  if type(exists) == 'table' then
    return false, exists
  end
  if exists == 0 then
    return nil, -2
  end
  local there = redis.pcall('HEXISTS', lock, field)
  if type(there) == 'table' then
    return false, there
  end
  local given = there == 0 and string.match(gone, '[^:]*:[^:]*$')
  if given and redis.pcall('HEXISTS', lock, given) == 1 and not redis.pcall('SET', gone, '1', 'PX', 10000).err then
    redis.pcall('HDEL', lock, given, given .. '#')
    if redis.pcall('EXISTS', lock) == 0 then
      return nil, -2
    end
  end
  local left = redis.pcall('PTTL', lock)
  if type(left) == 'table' then
    return false, left
  end
  return there, left
end

-- grant gives the lock, which is free or this hold's, to the hold, and a token with it where the server accepts one.
--
-- there, left   as heldHere returns them
-- the others    see vote
--
-- returns as vote does
local function grant(lock, counter, lease, field, there, left, token, first, ahead, slack, expiry, tokens)
  if not there then
    local counted = redis.pcall('HINCRBY', lock, field, '1')
    if type(counted) == 'table' then
      return nil, counted
    end
  end
  local said, why = report(lock, counter, math.max(left, tonumber(lease)), field)
  local expires = said and redis.pcall('PEXPIRE', lock, math.max(left, tonumber(lease))) or why
  if type(expires) == 'table' then -- refused: a lock that never expires, or that no client knows of, must not stay
    if not there then
      redis.pcall('HDEL', lock, field)
    end
    return nil, expires
  end
  if not expiry or there then -- a second copy of the vote has no part in what the first one took
    return 1, said
  end
  local now = said[4] * 1000000 + said[5]
  local takes = accepts(said[3], now, token, first, ahead, slack, tokens)
  if not takes then
    return 1, said
  end
  local set
  set, why = accept(counter, takes, now, expiry)
  if not set then
    redis.pcall('HDEL', lock, field)
    return nil, why
  end
  said[3] = takes
  return 2, said
end

-- vote takes a free lock on one server of a quorum for a new hold, or confirms that the hold has the lock there already. Where it takes
-- the lock it takes a proposed token with it, if the server accepts one: raise.lua is for what was not accepted.
--
-- lock     hash: field <uuid>:<number> = hold count
-- counter  the fencing counter: the largest token that was accepted here
-- lease    milliseconds
-- field    <uuid>:<number> of the hold, never used for another hold
-- gone     the key that is to say, for ten seconds, that a hold was dropped which its holder has given up: the key of the line, ':', and the field of
--          that hold; '' for none
-- token    as in accepts in proposal.lua
-- first    as in accepts
-- ahead    as in accepts
-- slack    as in accepts
-- expiry   of the counter, see accept in proposal.lua; nil: no token is proposed
-- tokens   as in accepts
--
-- returns 2, report   the hold has the lock here, and its token, which is the report's counter
--         1, report   the hold has the lock here, and no token by this call
--         0, report   another holder has the lock
--         nil, error
--         The report is that of report.lua. Its first element is the PTTL of the lock's key in milliseconds
local function vote(lock, counter, lease, field, gone, token, first, ahead, slack, expiry, tokens)
  local there, left = heldHere(lock, field, gone)
  if there == false then
    return nil, left
  end
  if there ~= 0 then
    return grant(lock, counter, lease, field, there, left, token, first, ahead, slack, expiry, tokens)
  end
  local written = redis.pcall('HDEL', lock, field) -- removes nothing, but a replica answers READONLY and not "held"
  if type(written) == 'table' then
    return nil, written
  end
  if redis.pcall('HEXISTS', lock, 'mode') == 1 then
    return nil, notALock('mode')
  end
  local said, why = report(lock, counter, left)
  return said and 0, said or why
end
