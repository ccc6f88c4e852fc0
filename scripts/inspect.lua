-- inspect tells who has a lock. It writes nothing, but begins with a write of nothing, so that a replica or a demoted
-- master answers READONLY and not an old truth.
--
-- KEYS[1]  lock
-- ARGV[1]  field  <uuid>:<number> of the hold that is asked about; may be empty
--
-- returns {exists, count, pttl, holder}: 1 or 0; the asked hold's count, 0 where it is not there; the key's expiry
-- in milliseconds (-1 never, -2 no key); the field of the hold that has the lock, '' for none; an error where the hash
-- has a field that is of no hold
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
