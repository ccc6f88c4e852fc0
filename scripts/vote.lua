-- vote takes a free lock on one server of a quorum for a new hold, or confirms that the hold has the lock there already. It
-- takes no token: raise.lua is for that.
--
-- lock     hash: field <uuid>:<number> = hold count
-- counter  the fencing counter, only read
-- lease    milliseconds
-- field    <uuid>:<number> of the hold, never used for another hold
--
-- returns 1, report   the hold has the lock here
--         0, report   another holder has the lock
--         nil, error
--         The report is that of report.lua. Its first element is the PTTL of the lock's key in milliseconds
local function vote(lock, counter, lease, field)
  local exists = redis.pcall('EXISTS', lock)
  if type(exists) == 'table' then
    return nil, exists
  end
  local there, left = 0, -2
  if exists == 1 then
    there = redis.pcall('HEXISTS', lock, field)
    if type(there) == 'table' then
      return nil, there
    end
    left = redis.pcall('PTTL', lock)
    if type(left) == 'table' then
      return nil, left
    end
  end
  if exists == 1 and there == 0 then
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
  if there == 0 then
    local counted = redis.pcall('HINCRBY', lock, field, '1')
    if type(counted) == 'table' then
      return nil, counted
    end
  end
  local said, why = report(lock, counter, math.max(left, tonumber(lease)), field)
  local expires = said and redis.pcall('PEXPIRE', lock, math.max(left, tonumber(lease))) or why
  if type(expires) == 'table' then -- refused: a lock that never expires, or that no client knows of, must not stay
    if there == 0 then
      redis.pcall('HDEL', lock, field)
    end
    return nil, expires
  end
  return 1, said
end
