-- inspect tells which holds have a read-write lock. It changes nothing, but begins with a write command that removes nothing, so that a replica or a
-- demoted master answers READONLY and not with old data (P8).
--
-- KEYS[1]  lock
-- KEYS[2]  a key that is never there (P54)
-- ARGV[1]  field  of the hold that is asked about; may be empty
--
-- returns {mode, pttl, count, fields...}: mode: read or write, '' for a lock that is free. pttl: milliseconds until the last of the holds ends by itself
-- (-1 never, -2 no key). count: 1 if the asked hold is there, otherwise 0. fields: those of all holds whose lease is not over
redis.call('HDEL', KEYS[1], '#')
local mode, why = modeOf(KEYS[1])
if not mode then
  return why
end
local found = {mode, redis.call('PTTL', KEYS[1]), 0}
for _, field in ipairs(redis.call('HKEYS', KEYS[1])) do
  if not reads(field) or string.match(field, '^[^:]+:%-?%d+$') and lastsOf(KEYS[1], field) > 0 then
    found[#found + 1] = field
    if field == ARGV[1] then
      found[3] = 1
    end
  end
end
return found
