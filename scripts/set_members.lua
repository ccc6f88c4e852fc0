-- set_members writes a record of a quorum's members on one server, if the server has the record that the writer has seen there. So a
-- copy that arrives late changes nothing.
--
-- KEYS[1]  the key of the record
-- ARGV[1]  the record that is meant to be there, '' for none
-- ARGV[2]  the record to write
--
-- returns 1 done, 0 the server has another record
if (redis.call('GET', KEYS[1]) or '') ~= ARGV[1] then
  return 0
end
redis.call('SET', KEYS[1], ARGV[2])
return 1
