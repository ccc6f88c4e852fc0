-- holding tells which hold has a lock, by the fields of the lock's hash.
--
-- lock  hash: field <uuid>:<number> = hold count, field <uuid>:<number># = number of the latest change
-- mine  the field that is asked about, or nil
--
-- returns holder, other, second   the field of the hold that has the lock, mine if that is there, '' for none; a field that is
--                                 of no hold, or nil; whether the holder has its second field
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

-- notALock is the error of a lock whose hash has a field that is of no hold.
local function notALock(field)
  return redis.error_reply("WRONGTYPE the lock's key is a hash with the field '" .. string.gsub(string.sub(field, 1, 64), '%c', '?') ..
    "', which is of no hold: it is another object, such as Redisson's RReadWriteLock, whose field is 'mode'")
end

