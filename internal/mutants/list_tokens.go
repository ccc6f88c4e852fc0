package main

// The breaks of fencing tokens, and of the blocks in which a client takes them.
var ofTokens = []mutant{
	{
		"Inv2: the token is read, not taken",
		"scripts/acquire.lua", "token, why = take(counter, tokens, expiry)", "token = (tonumber(redis.call('GET', counter) or 0) or 0) + 1",
		"./scripts", "Model|Sequence|P9_",
	},
	{
		"Inv2: a release gives tokens back although others were taken since",
		"scripts/unlock.lua", "redis.pcall('GET', counter) == last", "true",
		"./scripts", "P9_UnlockGives",
	},
	{
		"Inv2: tokens that somebody has are given back",
		"internal/engine/handoff.go", "	return b.last - b.next + 1\n", "	return b.last - b.next + 2\n",
		"./rlock", "TestBlocks",
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
		"Inv2: tokens with a floor run ahead of the clock",
		"internal/engine/handoff.go", "\t\treturn maxFlooredBlock\n", "\t\treturn maxBlock\n",
		"./rlock", "Inv2_BlocksWithAFloorAreSmall",
	},
	{
		"P15: token blocks although there are to be no handoffs",
		"internal/engine/handoff.go", "if w.tokens.Blocks && ls.client.set.Handoffs > 0 {", "if w.tokens.Blocks {",
		"./rlock", "BlocksWithoutHandoffs",
	},
	{
		"P12: an Unlock waits for tokens beyond its bound",
		"internal/engine/handoff.go", "min(maxBlockAge, within)", "maxBlockAge",
		"./rlock", "P12_BlocksWait",
	},
	{
		"P14: an op that may not ask for the time ends its batch",
		"scripts/token.lua", "redis.pcall('TIME')", "redis.call('TIME')",
		"./scripts", "Floor_P14",
	},
	{
		"Inv2: a handoff takes a token without the floor",
		"internal/engine/handoff.go", "ls.client.newInflight(w.tokens.counted(pass), w.attempts, wake)", "ls.client.newInflight(pass, w.attempts, wake)",
		"./fenced", "FloorCounterLost",
	},
	{
		"P9: a stable token changes",
		"internal/engine/reenter.go", "token := w.tokens.Fenced && !(h.stable && h.token != 0)", "token := w.tokens.Fenced",
		"./fenced", "Stable",
	},
	{
		"P9: a repeated acquire asks for another number of tokens",
		"internal/engine/handoff.go", "\tif w.tokenCount > 0 && w.attempts.uncertain() {\n\t\treturn\n\t}\n", "",
		"./rlock", "BlocksRepeatedAcquire/more_wait,_not_answered",
	},
	{
		"P9: a block is used for as long as it lasts",
		"internal/engine/handoff.go", " || b.sentAt.Age() > maxBlockAge {", " {",
		"./rlock", "BlocksAgeSoon",
	},
	{
		"P9: a block goes on after a re-entry",
		"internal/engine/handoff.go", " || h.reentered()", "",
		"./rlock", "BlocksEndWithAReentry",
	},
	{
		"P9: a block serves waiters with another lease",
		"internal/engine/handoff.go", " && w.lease == b.lease", "",
		"./rlock", "BlocksEndAtAnotherKindOfWaiter",
	},
	{
		"P9: a block serves waiters without the option",
		"internal/engine/handoff.go", "w != nil && w.tokens.Blocks && w", "w != nil && w",
		"./rlock", "BlocksEndAtAnotherKindOfWaiter",
	},
	{
		"P9: more tokens are reserved than there are waiters",
		"internal/engine/handoff.go", "\t\tw.tokenCount = min(max(int(ls.blockWaiters), 1), w.maxTokens())", "\t\tw.tokenCount = maxBlock",
		"./rlock", "BlocksAreUsedInOrder",
	},
	{
		"P9: the first token of a block is its last",
		"internal/engine/acquire.go", "\t\ttoken -= int64(w.tokenCount) - 1\n", "",
		"./rlock", "BlocksAreUsedInOrder",
	},
	{
		"P3: a granted lock that nobody takes stays",
		"internal/engine/wait.go", "\tw.attempts = b.attempts\n", "",
		"./rlock", "BlocksGrantedWaiterGivesUp$",
	},
	{
		"Shutdown does not wait for what is on its way",
		"internal/engine/client.go", "len(c.locks) == 0", "c.held == 0",
		"./rlock", "BlocksGrantDuringShutdown",
	},
	{
		"P3: what a granted waiter asked for itself is forgotten",
		"internal/engine/wait.go", "\tif w.attempts.giveUp() {\n\t\tw.client.releaser.release(w.attempts) //", "\tif w.attempts == nil {\n\t\tw.client.releaser.release(w.attempts) //",
		"./rlock", "BlocksGrantToAWaiterInDoubt",
	},
	{
		"Inv3: the lease of a granted hold counts from the grant",
		"internal/engine/acquire.go", "\tw.client.dog.Add(&h.lease, sent, lease)", "\tw.client.dog.Add(&h.lease, watchdog.Now(), lease)",
		"./rlock", "BlocksDeadline",
	},
}
