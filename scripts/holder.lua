-- holding tells which hold has a lock, by the fields of the lock's hash.
--
-- lock  hash: field <uuid>:<number> = hold count, field <uuid>:<number># = number of the latest change
--
-- returns holder, other   the field of the hold that has the lock, '' for none; a field that is of no hold, or nil
--         nil, error
local function holding(lock)
  local fields = redis.pcall('HKEYS', lock)
  if fields.err then
    return nil, fields
  end
  local holder, other = '', nil
  for _, field in ipairs(fields) do
    if string.match(field, '^[^:]+:%-?%d+$') then
      holder = holder == '' and field or holder
    elseif not string.match(field, '^[^:]+:%-?%d+#$') then
      other = field
    end
  end
  return holder, other
end

-- notALock is the error of a lock whose hash has a field that is of no hold.
local function notALock(field)
  return redis.error_reply("WRONGTYPE the lock's key is a hash with the field '" .. string.gsub(string.sub(field, 1, 64), '%c', '?') ..
    "', which is of no hold: it is another object, such as Redisson's RReadWriteLock, whose field is 'mode'")
end

