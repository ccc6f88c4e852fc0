-- The operations of a batch on one server, by their names in a batch. batch.lua follows.
local functions = {
  acquire = acquire, ['acquire+'] = acquire, ['acquire++'] = acquire,
  try = try, ['try+'] = try, ['try++'] = try,
  wait = wait, ['wait+'] = wait, ['wait++'] = wait,
  level = level, ['level+'] = level, ['level++'] = level,
  transfer = transfer, ['transfer+'] = transfer, ['transfer++'] = transfer,
  unlock = unlock,
  release = release, quick = release,
  leave = leave,
}
-- What each operation gets: so many arguments, and 10 more where it uses the line, 20 more where it uses a counter. It is one
-- number, not a table: each batch makes all of this anew.
local shapes = {
  acquire = 2, ['acquire+'] = 22, ['acquire++'] = 23,
  try = 13, ['try+'] = 33, ['try++'] = 34,
  wait = 18, ['wait+'] = 38, ['wait++'] = 39,
  level = 4, ['level+'] = 24, ['level++'] = 25,
  transfer = 3, ['transfer+'] = 23, ['transfer++'] = 24,
  unlock = 3,
  release = 15, quick = 13,
  leave = 13,
}
