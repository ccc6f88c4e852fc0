package main

// The breaks of fencing tokens.
var ofTokens = []mutant{
	{
		"Inv2: the token is read, not taken",
		"scripts/acquire.lua", "token, why = take(counter, expiry)", "token = (tonumber(redis.call('GET', counter) or 0) or 0) + 1",
		"./scripts", "Model|Sequence|P9_",
	},
	{
		"Inv2: a floor forgets the counter",
		"scripts/token.lua", "math.max(last, now - 1)", "now - 1",
		"./fenced", "FloorClockSetBack",
	},
	{
		"Inv2: a floor forgets the clock",
		"scripts/token.lua", "math.max(last, now - 1)", "last",
		"./fenced", "FloorSurvivesALoss",
	},
	{
		"P14: an op that may not ask for the time ends its batch",
		"scripts/token.lua", "redis.pcall('TIME')", "redis.call('TIME')",
		"./scripts", "Floor_P14",
	},
	{
		"Inv2: a handoff takes a token without the floor",
		"internal/engine/handoff.go", "ls.client.commands.New(c.options.counted(pass), ", "ls.client.commands.New(pass, ",
		"./fenced", "FloorCounterLost",
	},
	{
		"P9: a stable token changes",
		"internal/engine/reenter.go", "token := w.options.Fenced && !(h.stable && h.Token() != 0)", "token := w.options.Fenced",
		"./fenced", "Stable",
	},
	{
		"Shutdown does not wait for what is on its way",
		"internal/engine/client.go", "len(c.locks) == 0", "c.held == 0",
		"./rlock", "ShutdownWaitsForACall",
	},
}
