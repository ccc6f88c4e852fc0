package main

// The breaks of what becomes of a first one in the line that does not come.
var ofFirst = []mutant{
	{
		"P23: the second is not told to watch",
		"scripts/line.lua", "local heard = tell(", "local heard = first and 1 or tell(",
		"./scripts", "P23_",
	},
	{
		"P23: the second is told only where it was read with the first",
		"scripts/line.lua", "until second or not more", "until first or not more",
		"./scripts", "P23_",
	},
	{
		"P24: a far client does not say how long it needs to come",
		"internal/engine/distance.go", "needs > calledTimeout {", "false {",
		"./rlock", "P24_AFarClient",
	},
	{
		"P24: who watches a far client gives it no longer than a near one",
		"internal/engine/place.go", "time.Since(p.calledSince) < timeToComeOf(p.calledTicket)", "time.Since(p.calledSince) < calledTimeout",
		"./internal/engine", "P24_TheTimeOfAFarClient",
	},
	{
		"P24: the first is dropped on any look",
		"scripts/wait.lua", "head == stale and", "look == '1' and",
		"./scripts", "P24_",
	},
	{
		"P24: the first is dropped while the lock is held",
		"scripts/wait.lua", "    left, calls, owned = value, second, of\n", "    left, calls, owned = value, second, of\n    redis.pcall('ZREM', line, stale)\n",
		"./scripts", "P24_",
	},
	{
		"P24: who is dropped is not told",
		"scripts/wait.lua", "tell(line, publish, head, 'd ' .. head)", "",
		"./scripts", "P24_",
	},
	{
		"P24: a client drops itself",
		"scripts/wait.lua", "head == stale and head ~= ticket and", "head == stale and",
		"./scripts", "P24_",
	},
	{
		"P24: who stays in the line is told that it was dropped",
		"scripts/wait.lua", "lined('ZREM', line, head) == 1 then", "lined('ZREM', line, head) then",
		"./scripts", "P24_|P8_AReplica",
	},
	{
		"P28: a newcomer does not call a lone head",
		"scripts/wait.lua", "(look == '1' or #heads == 1 or heads[2] == ticket)", "(look == '1' or heads[2] == ticket)",
		"./scripts", "P28_",
	},
	{
		"P24: a client waits for a first one that may not have been called",
		"scripts/wait.lua", "(look == '1' or #heads == 1 or heads[2] == ticket)", "(look == '1' or #heads == 1)",
		"./scripts", "P24_",
	},
	{
		"P24: each message begins the bound anew",
		"internal/engine/place.go", "\tif p.calledTicket != ticket || ticket == out {\n", "\tif p.calledTicket != ticket || ticket != \"\" {\n",
		"./rlock", "P24_",
	},
	{
		"P24: the first is taken out before the bound",
		"internal/engine/place.go", " || time.Since(p.calledSince) < timeToComeOf(p.calledTicket) {", " {",
		"./rlock", "P24_",
	},
	{
		"P24: who is behind the second takes nobody out",
		"internal/engine/refused.go", "\tcase a.TTL == scripts.NoKey && w.quiet > 0:", "\tcase a.TTL == scripts.NoKey && w.quiet > 1000:",
		"./rlock", "P24_",
	},
	{
		"P24: the bound goes on from another stay in the line",
		"internal/engine/place.go", "stay{}, \"\"\n", "stay{}, p.calledTicket\n",
		"./rlock", "P24_",
	},
	{
		"P24: the bound goes on from another release",
		"internal/engine/place.go", "\t\t\tp.calledTicket = \"\" // anew: the bound begins again\n", "",
		"./rlock", "P24_",
	},
	{
		"P25: a call with a short wait does not hear a Redisson client",
		"internal/engine/refused.go", " || w.endsSoon())", ")",
		"./rlock", "P25_",
	},
	{
		"P32: a newcomer behind ghosts looks late",
		"internal/engine/refused.go", "w.watchFor(p.watchFromBehind(w.client.set.Poll))", "w.watchFor(w.client.set.Poll)",
		"./rlock", "P32_Ghosts",
	},
	{
		"P25: the second never listens on the lock's own channel",
		"internal/engine/place.go", "secondListensAfter = 300 * time.Millisecond", "secondListensAfter = time.Hour",
		"./rlock", "P25_Stopped",
	},
	{
		"P25: the second forgets a late first one when it finds the lock held",
		"internal/engine/refused.go", "\tif a.Before != 1 {\n\t\tp.clearCalled()\n\t}\n", "\tp.clearCalled()\n",
		"./rlock", "P25_Stopped",
	},
	{
		"P24: the second does not hear that the first one is alive",
		"internal/engine/place.go", "p.calledTicket, p.notice.watch = \"\", \"\" //", "//",
		"./rlock", "P24_Alive",
	},
	{
		"P24: an answer from before makes the second watch a first one that is alive",
		"internal/engine/place.go", "if p.aliveCount != aliveCount {", "if aliveCount < 0 {",
		"./internal/engine", "P24_Alive",
	},
	{
		"P24: the second acts on the call of a first one that has said since that it is alive",
		"internal/engine/place.go", "p.calledTicket, p.notice.watch = \"\", \"\"", "p.calledTicket = \"\"",
		"./internal/engine", "P24_Alive",
	},
}
