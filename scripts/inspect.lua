-- inspect tells which hold has a lock. It changes nothing, but begins with a write command that removes nothing, so that a
-- replica or a demoted master answers READONLY and not with old data (P8).
--
-- KEYS[1]  lock
-- ARGV[1]  field  <uuid>:<number> of the hold that is asked about; may be empty
--
-- returns {exists, count, pttl, holder}: exists: 1 or 0. count: the asked hold's count, 0 where that hold is not there.
-- pttl: milliseconds until the lock's key expires (-1 never, -2 no key). holder: the field of the hold that has the lock, ''
-- for none. Returns an error where the hash has a field that is of no hold
redis.call('HDEL', KEYS[1], '#')
local holder, other = holding(KEYS[1])
if not holder then
  return other
elseif other then
  return notALock(other)
end
return {
  redis.call('EXISTS', KEYS[1]),
  tonumber(redis.call('HGET', KEYS[1], ARGV[1]) or 0),
  redis.call('PTTL', KEYS[1]),
  holder,
}
