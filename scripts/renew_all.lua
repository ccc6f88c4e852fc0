
-- The call of a script that renews holds on one Redis.
return renewEach()
