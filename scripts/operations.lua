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
  acquire = 3, ['acquire+'] = 23, ['acquire++'] = 24,
  try = 14, ['try+'] = 34, ['try++'] = 35,
  wait = 19, ['wait+'] = 39, ['wait++'] = 40,
  level = 4, ['level+'] = 24, ['level++'] = 25,
  transfer = 4, ['transfer+'] = 24, ['transfer++'] = 25,
  unlock = 3,
  release = 15, quick = 13,
  leave = 13,
}
