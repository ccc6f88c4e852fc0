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
		"internal/line/distance.go", "needs > CalledTimeout {", "false {",
		"./rlock", "P24_AFarClient",
	},
	{
		"P24: who watches a far client gives it no longer than a near one",
		"internal/line/refused.go", "now.Sub(p.calledSince) < timeToComeOf(p.calledTicket)", "now.Sub(p.calledSince) < CalledTimeout",
		"./internal/line", "P24_TheTimeOfAFarClient",
	},
	{
		"P24: the first is dropped on any look",
		"scripts/line.lua", "head == stale and", "look == '1' and",
		"./scripts", "P24_",
	},
	{
		"P24: the first is dropped while the lock is held",
		"scripts/wait.lua", "    left, calls, owned = value, second, of\n", "    left, calls, owned = value, second, of\n    redis.pcall('ZREM', line, stale)\n",
		"./scripts", "P24_",
	},
	{
		"P24: who is dropped is not told",
		"scripts/line.lua", "tell(line, publish, head, 'd ' .. head)", "",
		"./scripts", "P24_",
	},
	{
		"P24: a client drops itself",
		"scripts/line.lua", "head == stale and head ~= ticket and", "head == stale and",
		"./scripts", "P24_",
	},
	{
		"P24: who stays in the line is told that it was dropped",
		"scripts/line.lua", "lined('ZREM', line, head) == 1 then", "lined('ZREM', line, head) then",
		"./scripts", "P24_|P8_AReplica",
	},
	{
		"P28: a newcomer does not call a lone head",
		"scripts/line.lua", "(look == '1' or #heads == 1 or heads[2] == ticket)", "(look == '1' or heads[2] == ticket)",
		"./scripts", "P28_",
	},
	{
		"P24: a client waits for a first one that may not have been called",
		"scripts/line.lua", "(look == '1' or #heads == 1 or heads[2] == ticket)", "(look == '1' or #heads == 1)",
		"./scripts", "P24_",
	},
	{
		"P24: each message begins the bound anew",
		"internal/line/refused.go", "\tif p.calledTicket != ticket || ticket == out {\n", "\tif p.calledTicket != ticket || ticket != \"\" {\n",
		"./rlock", "P24_",
	},
	{
		"P24: the first is taken out before the bound",
		"internal/line/refused.go", " || now.Sub(p.calledSince) < timeToComeOf(p.calledTicket) {", " {",
		"./rlock", "P24_",
	},
	{
		"P24: who is behind the second takes nobody out",
		"internal/line/refused.go", "\tcase free && p.quiet > 0:", "\tcase free && p.quiet > 1000:",
		"./rlock", "P24_",
	},
	{
		"P24: the bound goes on from another stay in the line",
		"internal/line/place.go", "stay{}, \"\", told\n", "stay{}, p.calledTicket, told\n",
		"./rlock", "P24_",
	},
	{
		"P24: the bound goes on from another release",
		"internal/line/message.go", "\t\t\tp.calledTicket = \"\" // anew: the bound begins again\n", "",
		"./rlock", "P24_",
	},
	{
		"P25: a call with a short wait does not hear a Redisson client",
		"internal/line/refused.go", " || endsSoon)", ")",
		"./rlock", "P25_",
	},
	{
		"P32: a newcomer behind ghosts looks late",
		"internal/line/refused.go", "\t\treturn p.watchFromBehind(poll), listening\n", "\t\treturn poll, listening\n",
		"./rlock", "P32_Ghosts",
	},
	{
		"P25: the second never listens on the lock's own channel",
		"internal/line/place.go", "secondListensAfter = 300 * time.Millisecond", "secondListensAfter = time.Hour",
		"./rlock", "P25_Stopped",
	},
	{
		"P25: the second forgets a late first one when it finds the lock held",
		"internal/line/refused.go", "\tcase a.Before != 1:\n", "\tdefault:\n",
		"./rlock", "P25_Stopped",
	},
	{
		"P24: the second does not hear that the first one is alive",
		"internal/line/message.go", "p.calledTicket, p.notice.watch = \"\", \"\" //", "//",
		"./rlock", "P24_Alive",
	},
	{
		"P24: an answer from before makes the second watch a first one that is alive",
		"internal/line/refused.go", "if p.alive {", "if false {",
		"./internal/line", "P24_Alive",
	},
	{
		"P24: the second acts on the call of a first one that has said since that it is alive",
		"internal/line/message.go", "p.calledTicket, p.notice.watch = \"\", \"\"", "p.calledTicket = \"\"",
		"./internal/line", "P24_Alive",
	},
}
