-- batch does several operations, each as if it were alone: an operation that fails does not fail its neighbours.
--
-- KEYS  for each operation: the lock, then the line if the operation uses it, then the counter if the operation uses it
-- ARGV  for each operation: its name, with a + where it uses a counter, a second + where the counter has a floor, and a third where
--       several tokens are taken; then the operation's arguments
--
-- In place of BRANCHES op.go puts a branch for each name: it calls the operation, and moves k and a on.
--
-- returns one list with two elements for each operation: the two values that the operation returns, or -1 and the error. The
-- verdict is 10, 20 or 30 more where the operation went on without the line (line.lua). On a replica
-- nothing was written, and the reply is READONLY itself: go-redis leaves a connection for that reply, and for no list with it
local replies = {}
local k, a, n = 1, 1, 1
while ARGV[a] do
  local name, verdict, value = ARGV[a], nil, nil
  BRANCHES
  if not verdict then
    if string.find(value.err, 'READONLY', 1, true) then
      return redis.error_reply("READONLY You can't write against a read only replica.")
    end
    verdict, value = -1, value.err
  end
  replies[n], replies[n + 1] = verdict, value
  n = n + 2
end
return replies
