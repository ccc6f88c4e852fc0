-- A read-write lock is a hash in the form of Redisson's RReadWriteLock. Its field mode is read or write. Each hold has a field with its count, 1:
-- <uuid>:<number> of a hold that reads, <uuid>:<number>:write of the one that writes. A hold that reads also has a key of its own,
-- {NAME}:<field>:rwlock_timeout:1, which lasts as long as its lease. The hash lasts as long as the longest of these (P46). In mode read the field
-- phase is t and a number: the token that all holds with tokens have which read now (P48). Where that token has a floor a colon and the server's
-- replication id follow.

-- reads tells whether the hold of this field reads.
local function reads(field) return string.sub(field, -6) ~= ':write' end

-- waitsToRead tells whether the client with this ticket waits to read: <client>r:<number>. One that waits to write has <client>w:<number>.
local function waitsToRead(ticket) return string.sub(client(ticket), -1) == 'r' end

local ahead -- how many bytes a hook of the client's, or a proxy, has put before the name of each key (P30)

-- ownKey returns the key that a hold which reads has for itself. Redisson has one for each level of a hold.
local function ownKey(lock, field, level)
  ahead = ahead or #KEYS[1] - (string.match(barrier, ':(%d+):rwlock_timeout:1$') or #KEYS[1])
  local name = string.sub(lock, ahead + 1)
  local base = string.find(name, '{', 1, true) and lock or string.sub(lock, 1, ahead) .. '{' .. name .. '}'
  return base .. ':' .. field .. ':rwlock_timeout:' .. (level or '1')
end

-- modeOf returns 'read' or 'write', '' for a lock that is free, or nil and an error.
local function modeOf(lock)
  local mode = redis.pcall('HGET', lock, 'mode')
  if type(mode) == 'table' then
    return nil, mode
  elseif mode == 'read' or mode == 'write' then
    return mode
  elseif redis.pcall('EXISTS', lock) == 0 then
    return ''
  end
  return nil, redis.error_reply("WRONGTYPE the lock's key is a hash whose field 'mode' is not 'read' or 'write': it is another object, such as a lock that is no read-write lock")
end

-- open tells whether a lock in this mode can be taken by a hold that reads, or by one that writes (P49).
local function open(mode, toRead) return mode == '' or (mode == 'read' and toRead) end

-- forward calls the first client in the line if the lock is open to it.
--
-- returns what call (line.lua) returns, 0 where nobody was called; and whether somebody is in the line
local function forward(mode, line, publish)
  local head = lined('ZRANGE', line, 0, 0)[1]
  if head and open(mode, waitsToRead(head)) then
    return call(line, publish, 0, '', 0), true
  end
  return 0, head ~= nil
end

-- lasting makes the hash, which has so many milliseconds left, last for as long as a lease. It is called before the key of that lease is written: on Redis
-- 7.0 and older the clock goes on within a script, and in a hash that ends later than all leases others seem to read (P51). A holder counts its lease from
-- before it has asked, and so does not trust the milliseconds for which the key is there and the hash is not. lasting returns nil, or the error.
local function lasting(lock, left, lease)
  local extended = tonumber(lease) > left and redis.pcall('PEXPIRE', lock, lease)
  return type(extended) == 'table' and extended or nil
end

-- replicationId returns the id by which Redis tells histories of its data apart. A server has another one since it was started or promoted, and then may
-- have forgotten tokens. '' where the server does not tell it.
local function replicationId()
  local info = redis.pcall('INFO', 'replication')
  return type(info) == 'string' and string.match(info, 'master_replid:(%w+)') or ''
end

-- beginRead takes a lock for a hold that reads.
--
-- mode                                  '' or 'read'
-- lock, counter, lease, field, expiry   see acquire below
--
-- returns as acquire does
local function beginRead(mode, lock, counter, lease, field, expiry)
  local token, phase = 0, nil
  if counter then
    local said = mode == 'read' and redis.pcall('HGET', lock, 'phase') or ''
    if type(said) == 'table' then
      return nil, said
    end
    local id = expiry and replicationId() or ''
    local kept, of = string.match(said, '^t(%d+):?(%w*)$')
    token = tonumber((id == '' or of == id) and kept or '')
    if not token then -- the first hold with tokens of this phase, or with a floor since the server has this id
      local why
      token, why = take(counter, expiry)
      if not token then
        return nil, why
      end
      phase = 't' .. string.format('%.0f', token) .. (id ~= '' and ':' .. id or '') -- no number: Redisson's release takes a number for the count of a hold (P47)
    end
  end
  local left = mode == 'read' and redis.pcall('PTTL', lock) or 0
  if type(left) == 'table' then
    return nil, left
  end
  local written = phase and redis.pcall('HSET', lock, 'mode', 'read', 'phase', phase, field, '1') or redis.pcall('HSET', lock, 'mode', 'read', field, '1')
  local set = type(written) == 'table' and written or lasting(lock, left, lease)
  set = set or redis.pcall('SET', ownKey(lock, field), '1', 'PX', lease)
  if set.err then -- a lock that never expires must not stay, nor one that lasts longer than its holds
    redis.pcall('HDEL', lock, field)
    if mode == '' then
      redis.pcall('HDEL', lock, 'mode', 'phase')
    elseif left > 0 then
      redis.pcall('PEXPIRE', lock, left)
    end
    return nil, set
  end
  return 1, token
end

-- beginWrite takes a free lock for a hold that writes.
--
-- lock, counter, lease, field, expiry   see acquire below
--
-- returns as acquire does
local function beginWrite(lock, counter, lease, field, expiry)
  local token = 0
  if counter then
    local why
    token, why = take(counter, expiry)
    if not token then
      return nil, why
    end
  end
  local written = redis.pcall('HSET', lock, 'mode', 'write', field, '1')
  local expires = type(written) == 'table' and written or redis.pcall('PEXPIRE', lock, lease)
  if type(expires) == 'table' then -- a lock that never expires must not stay
    redis.pcall('HDEL', lock, 'mode', field)
    return nil, expires
  end
  return 1, token
end

-- begin takes a lock in this mode, which is open to the hold.
local function begin(mode, lock, counter, lease, field, expiry)
  if reads(field) then
    return beginRead(mode, lock, counter, lease, field, expiry)
  end
  return beginWrite(lock, counter, lease, field, expiry)
end

-- remaining returns how long the lock stays taken, in milliseconds, or nil and an error. It removes nothing, but a replica answers READONLY and not
-- that somebody has the lock.
local function remaining(lock, field)
  local written = redis.pcall('HDEL', lock, field .. '#')
  if type(written) == 'table' then
    return nil, written
  end
  local left = redis.pcall('PTTL', lock)
  if type(left) == 'table' then
    return nil, left
  end
  return left
end

-- acquire takes a lock for a new hold, if it is open to that. An attempt for a read-write lock is sent once (P43), so that acquire does not look for
-- the hold itself.
--
-- lock     see above
-- counter  the fencing counter; nil for a hold without a token
-- lease    milliseconds
-- field    of the hold, never used for another hold
-- expiry   of the counter, see take in token.lua; nil for tokens without a floor
--
-- returns 1, token   the hold has the lock; its token, 0 without a counter
--         0, pttl    other holds have the lock; milliseconds until the last of them ends by itself
--         nil, error
local function acquire(lock, counter, lease, field, expiry)
  local mode, why = modeOf(lock)
  if not mode then
    return nil, why
  end
  if open(mode, reads(field)) then
    return begin(mode, lock, counter, lease, field, expiry)
  end
  local left
  left, why = remaining(lock, field)
  if not left then
    return nil, why
  end
  return 0, left
end

