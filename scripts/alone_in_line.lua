-- The same of an operation that uses the line. Its verdict is 10, 20 or 30 more where it went on without the line (line.lua).
local verdict, value = operation(KEYS[1], KEYS[2], KEYS[3], unpack(ARGV)) -- the lock, the line, and the counter if it is used
return verdict and {refused and verdict + refused or verdict, value} or value
