-- guarded runs a write if no larger token than this one was accepted before, and remembers the token. The scripts do and
-- eval end with a call of it.
--
-- KEYS[1]  marker of the resource: the largest accepted token, a decimal number
-- KEYS[2]  what is known of the operation with this id; only where ARGV[3] is not 0
-- ARGV[1]  token
-- ARGV[2]  milliseconds that the marker lives on, 0 for ever
-- ARGV[3]  milliseconds that the id is remembered, 0 where there is none
-- first    the number of keys and of arguments that belong to the guard
--
-- returns {1, reply}   written
--         {0, seen}    stale: nothing was written, seen is the larger token
--         {2, known}   the operation with this id was done before, and this was its reply (see encode)
--         an error     not written, or half: the token counts if the write was begun, and the id is free
local token, life, memory = ARGV[1], ARGV[2], ARGV[3]
local marker, id = KEYS[1], memory ~= '0' and KEYS[2]
local first = {keys = id and 2 or 1, args = 3}

-- Tokens are compared as text: Lua's numbers are exact up to 2^53 only.
local function larger(a, b)
  return #a > #b or #a == #b and a > b
end

-- bare is an error's text from its code on: Redis 6.2 puts the place in the script before it.
local function bare(text)
  return (string.gsub(text, '^@user_script: %d+: %-?', ''))
end

local function failed(reply)
  if type(reply) ~= 'table' or not reply.err then
    return false
  end
  reply.err = bare(reply.err)
  return true
end

local function put(key, value, ms)
  if ms == '0' then
    return redis.pcall('SET', key, value)
  end
  return redis.pcall('SET', key, value, 'PX', ms)
end

-- ends is when the marker's life is over, in milliseconds, -1 never. The clock is in it because it goes on in the scripts of
-- Redis 6.2; where it stands still for PTTL only, the end seems to be later than it is.
local function ends()
  local left = redis.pcall('PTTL', marker)
  if failed(left) or left < 0 then
    return left
  end
  local now = redis.pcall('TIME')
  return failed(now) and now or now[1] * 1000 + now[2] / 1000 + left
end

-- encode writes a reply down: i1; an integer, s3;abc a string or status, n; nil, a2;... a list of so many.
local function encode(reply)
  local kind = type(reply)
  if kind == 'number' then
    return string.format('i%.0f;', reply < 0 and math.ceil(reply) or math.floor(reply))
  elseif kind == 'string' then
    return 's' .. #reply .. ';' .. reply
  elseif kind == 'table' then
    if reply.ok or reply.err then
      return encode(reply.ok or reply.err)
    end
    local parts = {}
    for i, part in ipairs(reply) do
      parts[i] = encode(part)
    end
    return 'a' .. #parts .. ';' .. table.concat(parts)
  end
  return reply and 'i1;' or 'n;'
end

local function guarded(write)
  if id then
    local known = redis.pcall('GET', id)
    if failed(known) then
      return known
    end
    if known then
      local master = redis.pcall('GETEX', id) -- changes nothing, but a replica answers READONLY
      return failed(master) and master or {2, known}
    end
  end
  local seen = redis.pcall('GET', marker)
  if failed(seen) and string.find(seen.err, 'WRONGTYPE') or
    type(seen) == 'string' and (not string.find(seen, '^[1-9]%d*$') or larger(seen, '9223372036854775807')) then
    return redis.error_reply('ERR ' .. marker .. ' is the marker of a guard, and holds something that is no token')
  end
  if failed(seen) then
    return seen
  end
  if seen and larger(seen, token) then
    local master = redis.pcall('GETEX', marker) -- as above: what is stale is said by a master only
    return failed(master) and master or {0, seen}
  end

  -- The marker comes before the write: where memory or rights are missing, nothing was written. Memory is not asked for
  -- again in a script that has written, and the rights to the keys of the guard were, so that the id cannot fail. It stays
  -- if the write fails: half of it may be there, and an older token must not get in over that.
  local marked = put(marker, token, life)
  if failed(marked) then
    return marked
  end
  local before = ends()
  if failed(before) then
    return before
  end
  local reply = write()
  local changed = 'ERR the write has changed ' .. marker .. ' or the database, and what it did stays'
  if redis.pcall('GET', marker) ~= token then -- and nothing may be put or deleted where another database may be
    return redis.error_reply(changed)
  end
  local after = ends()
  if failed(after) or (after < 0) ~= (before < 0) or after < before - 1000 then -- to the second: clocks and replies are rounded
    put(marker, token, life)
    return redis.error_reply(changed)
  end
  if failed(reply) then
    return reply
  end
  if id then
    local ok, text = pcall(encode, reply) -- Lua's stack ends before a reply in a circle does
    put(id, ok and text or '', memory)
  end
  return {1, reply or false}
end
