-- batch does several operations, each as if it were alone: one that fails does not fail its neighbours.
--
-- KEYS  for each operation: the lock, and its counter if it has one
-- ARGV  for each operation: its name, 1 or 0 for a counter or none, and its arguments
--
-- returns for each operation two elements of one list: what it returns, or -1 and the error
local operations = {acquire = {acquire, 3}, level = {level, 4}, unlock = {unlock, 3}, transfer = {transfer, 4}}
local replies = {}
local k, a, n = 1, 1, 1
while ARGV[a] do
  local operation, counter = operations[ARGV[a]], nil
  local lock = KEYS[k]
  k = k + 1
  if ARGV[a + 1] == '1' then
    counter = KEYS[k]
    k = k + 1
  end
  local reply = operation[1](lock, counter, unpack(ARGV, a + 2, a + 1 + operation[2]))
  if reply.err then
    replies[n], replies[n + 1] = -1, reply.err
  else
    replies[n], replies[n + 1] = reply[1], reply[2]
  end
  a = a + 2 + operation[2]
  n = n + 2
end
return replies
