
-- The call of a script that renews holds on one server of a quorum. It returns the report of report.lua, whose first element is what renewEach
-- returns, and whose others about the lock are empty.
local failed = renewEach()
return failed.err and failed or report(KEYS[1], nil, failed, '')
