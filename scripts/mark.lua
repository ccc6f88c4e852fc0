-- mark writes or deletes the key by which a server of a quorum shows after a restart that it has kept its data. mark does so
-- only in the run of the server that is meant: otherwise a copy that arrives after a restart would write the key to an empty
-- server, which would seem to have kept everything.
--
-- KEYS[1]  the key
-- ARGV[1]  the run id that is meant
-- ARGV[2]  1: write the key, if it is not there; 0: delete the key
--
-- returns 1 done, 0 the server is in another run
if string.match(redis.call('INFO', 'server'), 'run_id:([^\r\n]+)') ~= ARGV[1] then
  return 0
end
if ARGV[2] == '1' then
  redis.call('SET', KEYS[1], ARGV[1], 'NX')
else
  redis.call('DEL', KEYS[1])
end
return 1
