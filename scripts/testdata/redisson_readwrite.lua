-- What the read-write lock of Redisson does to its keys, without its latches for repeats.
--
-- KEYS[1]  lock
-- KEYS[2]  channel
-- ARGV     what is to be done; the lease in milliseconds; <uuid>:<thread> of the hold that reads
--
-- returns 1 done, 0 not done or not the last level, -1 the hold is not there
local lock, channel = KEYS[1], KEYS[2]
local what, lease, reader = ARGV[1], tonumber(ARGV[2]), ARGV[3]
local writer = reader .. ':write'
local mode = redis.call('HGET', lock, 'mode')

local function ownKey(field, level)
  local base = string.find(lock, '{', 1, true) and lock or '{' .. lock .. '}'
  return base .. ':' .. field .. ':rwlock_timeout:' .. level
end

local does = {}

does['lock to read'] = function()
  if not mode then
    redis.call('HSET', lock, 'mode', 'read')
    redis.call('HSET', lock, reader, 1)
    redis.call('SET', ownKey(reader, 1), 1)
    redis.call('PEXPIRE', ownKey(reader, 1), lease)
    redis.call('PEXPIRE', lock, lease)
    return 1
  end
  if mode == 'read' or mode == 'write' and redis.call('HEXISTS', lock, writer) == 1 then
    local level = redis.call('HINCRBY', lock, reader, 1)
    redis.call('SET', ownKey(reader, level), 1)
    redis.call('PEXPIRE', ownKey(reader, level), lease)
    redis.call('PEXPIRE', lock, math.max(redis.call('PTTL', lock), lease))
    return 1
  end
  return 0
end

does['lock to write'] = function()
  if not mode then
    redis.call('HSET', lock, 'mode', 'write')
    redis.call('HSET', lock, writer, 1)
    redis.call('PEXPIRE', lock, lease)
    return 1
  end
  if mode == 'write' and redis.call('HEXISTS', lock, writer) == 1 then
    redis.call('HINCRBY', lock, writer, 1)
    redis.call('PEXPIRE', lock, redis.call('PTTL', lock) + lease)
    return 1
  end
  return 0
end

does['unlock to read'] = function()
  if not mode then
    redis.call('PUBLISH', channel, '0')
    return -1
  end
  if redis.call('HEXISTS', lock, reader) == 0 then
    return -1
  end
  local level = redis.call('HINCRBY', lock, reader, -1)
  if level == 0 then
    redis.call('HDEL', lock, reader)
  end
  redis.call('DEL', ownKey(reader, level + 1))
  if redis.call('HLEN', lock) > 1 then
    local most = -3
    for _, field in ipairs(redis.call('HKEYS', lock)) do
      local count = tonumber(redis.call('HGET', lock, field))
      if count then
        for i = count, 1, -1 do
          most = math.max(most, redis.call('PTTL', ownKey(field, i)))
        end
      end
    end
    if most > 0 then
      redis.call('PEXPIRE', lock, most)
      return 0
    end
    if mode == 'write' then
      return 0
    end
  end
  redis.call('DEL', lock)
  redis.call('PUBLISH', channel, '0')
  return 1
end

does['unlock to write'] = function()
  if not mode then
    redis.call('PUBLISH', channel, '1')
    return -1
  end
  if mode ~= 'write' or redis.call('HEXISTS', lock, writer) == 0 then
    return -1
  end
  if redis.call('HINCRBY', lock, writer, -1) > 0 then
    redis.call('PEXPIRE', lock, lease)
    return 0
  end
  redis.call('HDEL', lock, writer)
  if redis.call('HLEN', lock) == 1 then
    redis.call('DEL', lock)
    redis.call('PUBLISH', channel, '1')
  else
    redis.call('HSET', lock, 'mode', 'read')
  end
  return 1
end

does['renew to read'] = function()
  local count = tonumber(redis.call('HGET', lock, reader))
  if not count then
    return -1
  end
  for i = count, 1, -1 do
    redis.call('PEXPIRE', ownKey(reader, i), lease)
  end
  redis.call('PEXPIRE', lock, lease)
  return 1
end

does['renew to write'] = function()
  if redis.call('HEXISTS', lock, writer) == 0 then
    return -1
  end
  redis.call('PEXPIRE', lock, lease)
  return 1
end

return does[what]()
