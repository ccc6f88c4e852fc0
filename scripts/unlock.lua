-- unlock releases a hold, whatever its count, and tells the waiters. It is also what forces a lock open, given the
-- field of the hold that was seen there.
--
-- KEYS[1]  lock
-- ARGV[1]  field    <uuid>:<number> of the hold
-- ARGV[2]  channel  redisson_lock__channel:{NAME}
-- ARGV[3]  publish  PUBLISH, or SPUBLISH where the waiters use sharded channels
--
-- returns 1   released
--         0   the hold is not there
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then
  redis.call('HDEL', KEYS[1], ARGV[1]) -- of nothing: a replica answers READONLY and not "gone"
  return 0
end
redis.call('DEL', KEYS[1])
redis.pcall(ARGV[3], ARGV[2], '0') -- a user without rights on the channel has still released the lock
return 1
