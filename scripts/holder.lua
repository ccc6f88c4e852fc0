-- holding tells which hold has a lock, by the fields of the lock's hash.
--
-- lock  hash: field <uuid>:<number> = hold count, second field <uuid>:<number># = number of the latest change of the count
-- mine  the field of the hold that asks, or nil
--
-- returns holder, other, second   holder: the field of the hold that has the lock, mine if mine is in the hash, '' for none.
--                                 other: a field that is of no hold ('mode' if that is one), or nil. second: true if the
--                                 hold that has the lock has its second field, otherwise nil
--         nil, error
local function holding(lock, mine)
  local fields = redis.pcall('HKEYS', lock)
  if fields.err then
    return nil, fields
  end
  local holder, other, seconds = '', nil, {}
  for _, field in ipairs(fields) do
    if string.match(field, '^[^:]+:%-?%d+$') then
      holder = (holder == '' or field == mine) and field or holder
    elseif string.match(field, '^[^:]+:%-?%d+#$') then
      seconds[field] = true
    elseif other ~= 'mode' then
      other = field
    end
  end
  return holder, other, seconds[holder .. '#']
end

-- own returns the hold that has a lock, by its field holder, if it is one of the client that the other field is of, otherwise nil.
local function own(holder, field)
  return string.match(holder, '^[^:]*:') == string.match(field, '^[^:]*:') and holder or nil
end

-- notALock makes the error for a lock whose hash has this field, which is of no hold.
local function notALock(field)
  return redis.error_reply("WRONGTYPE the lock's key is a hash with the field '" .. string.gsub(string.sub(field, 1, 64), '%c', '?') ..
    "', which is of no hold: it is another object, such as Redisson's RReadWriteLock, whose field is 'mode'")
end

