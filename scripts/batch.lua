-- batch does several operations, each as if it were alone: one that fails does not fail its neighbours.
--
-- KEYS  for each operation: the lock, and its counter if it has one
-- ARGV  for each operation: its name, with a + where it has a counter, and one more where that has a floor; its arguments
--
-- returns for each operation two elements of one list: what it returns, or -1 and the error
local operations = {
  acquire = {acquire, 3}, level = {level, 4}, transfer = {transfer, 4}, unlock = {unlock, 3}, ['unlock+'] = {unlock, 5, true},
  retain = {retain, 5}, ['retain+'] = {retain, 5, true}, ['retain++'] = {retain, 6, true},
  ['reserve+'] = {reserve, 3, true}, ['acquire+'] = {acquire, 3, true}, ['level+'] = {level, 4, true}, ['transfer+'] = {transfer, 4, true},
  ['reserve++'] = {reserve, 4, true}, ['acquire++'] = {acquire, 4, true}, ['level++'] = {level, 5, true}, ['transfer++'] = {transfer, 5, true},
}
local replies = {}
local k, a, n = 1, 1, 1
while ARGV[a] do
  local operation, counter = operations[ARGV[a]], nil
  local lock = KEYS[k]
  k = k + 1
  if operation[3] then
    counter = KEYS[k]
    k = k + 1
  end
  local verdict, value = operation[1](lock, counter, unpack(ARGV, a + 1, a + operation[2]))
  if not verdict then
    verdict, value = -1, value.err
  end
  replies[n], replies[n + 1] = verdict, value
  a = a + 1 + operation[2]
  n = n + 2
end
return replies
