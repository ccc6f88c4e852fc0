-- The same of an operation that uses the line.
local verdict, value = operation(KEYS[1], KEYS[2], KEYS[3], unpack(ARGV)) -- the lock, the line, and the counter if it is used
return verdict and {verdict, value} or value
