-- remove takes a hold out of the lock's hash, whatever its count.
--
-- lock, field   see unlock
--
-- returns 1, second   removed. second: true if the hold had its second field
--         0, 0        the hold is not there
--         0, own      the same, and another hold of its client has the lock; the field of that hold
--         nil, error
local function remove(lock, field)
  -- The hash goes with its last field. Where the hold is not there this removes nothing, but a replica answers READONLY
  -- and not "gone".
  local removed = redis.pcall('HDEL', lock, field, field .. '#')
  if type(removed) == 'table' then
    return nil, removed
  end
  if removed == 0 then
    return 0, own(holding(lock) or '', field) or 0
  end
  return 1, removed > 1
end

-- announce tells the connections that listen on the lock's channel that the lock is free. It returns how many they were, as far as
-- this server knows, or -1 where the server refused to tell anybody: a user without rights on the channel has still released the
-- lock.
local function announce(channel, publish)
  local told = redis.pcall(publish, channel, '0')
  return type(told) == 'table' and -1 or told
end

-- unlock releases a hold, whatever its count, and tells the connections that listen on the lock's channel.
--
-- lock     hash
-- field    <uuid>:<number> of the hold
-- channel  redisson_lock__channel:{NAME}
-- publish  PUBLISH, or SPUBLISH where the waiters use sharded channels
--
-- returns 1, receivers   released. receivers: see announce
--         0, 0           the hold is not there; 0, own: see remove
--         nil, error
local function unlock(lock, _, field, channel, publish)
  local verdict, value = remove(lock, field)
  if verdict ~= 1 then
    return verdict, value
  end
  return 1, announce(channel, publish)
end
