-- batch does several operations, each as if it were alone: one that fails does not fail its neighbours.
--
-- KEYS  for each operation: the lock, its line if it has one, and its counter if it has one
-- ARGV  for each operation: its name, with a + where it has a counter, and one more where that has a floor; its arguments
--
-- returns for each operation two elements of one list: what it returns, or -1 and the error
local operations = { -- the function, how many arguments, whether it has a counter, whether it has a line
  acquire = {acquire, 3}, level = {level, 4}, transfer = {transfer, 4}, unlock = {unlock, 3}, ['unlock+'] = {unlock, 5, true},
  ['reserve+'] = {reserve, 3, true}, ['acquire+'] = {acquire, 3, true}, ['level+'] = {level, 4, true}, ['transfer+'] = {transfer, 4, true},
  ['reserve++'] = {reserve, 4, true}, ['acquire++'] = {acquire, 4, true}, ['level++'] = {level, 5, true}, ['transfer++'] = {transfer, 5, true},
  wait = {wait, 8, false, true}, ['wait+'] = {wait, 8, true, true}, ['wait++'] = {wait, 9, true, true},
  try = {try, 4, false, true}, ['try+'] = {try, 4, true, true}, ['try++'] = {try, 5, true, true},
  release = {release, 7, false, true}, ['release+'] = {release, 7, true, true}, quick = {release, 3, false, true},
  leave = {leave, 2, false, true},
}
local replies = {}
local k, a, n = 1, 1, 1
while ARGV[a] do
  local operation = operations[ARGV[a]]
  local lock, line, counter = KEYS[k], nil, nil
  k = k + 1
  if operation[4] then
    line = KEYS[k]
    k = k + 1
  end
  if operation[3] then
    counter = KEYS[k]
    k = k + 1
  end
  local verdict, value
  if line then
    verdict, value = operation[1](lock, line, counter, unpack(ARGV, a + 1, a + operation[2]))
  else
    verdict, value = operation[1](lock, counter, unpack(ARGV, a + 1, a + operation[2]))
  end
  if not verdict then
    verdict, value = -1, value.err
  end
  replies[n], replies[n + 1] = verdict, value
  a = a + 1 + operation[2]
  n = n + 2
end
return replies
