-- mark leaves or takes away the key by which a server of a quorum shows after a restart that it kept its data. It does so
-- only in the run that is meant: a copy that arrives after a restart would say of an empty server that it kept everything.
--
-- KEYS[1]  the key
-- ARGV[1]  the run id that is meant
-- ARGV[2]  1: leave the key, if it is not there; 0: take it away
--
-- returns 1 done, 0 this is another run
if string.match(redis.call('INFO', 'server'), 'run_id:([^\r\n]+)') ~= ARGV[1] then
  return 0
end
if ARGV[2] == '1' then
  redis.call('SET', KEYS[1], ARGV[1], 'NX')
else
  redis.call('DEL', KEYS[1])
end
return 1
