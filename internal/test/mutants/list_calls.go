package main

// The breaks of calls: who is called when a lock comes free, and who is told of it.
var ofCalls = []mutant{
	{
		"P27: the client that releases is a stranger",
		"scripts/line.lua", "math.max(told - known, 0)", "told",
		"./scripts", "P27_",
	},
	{
		"P27: the client that releases leaves itself out for itself",
		"scripts/line.lua", "client(ticket) == client(field) and told or", "",
		"./scripts", "P27_",
	},
	{
		"P37: those in no line are never told",
		"scripts/line.lua", "% (waiting + 1) > 0", "% (waiting + 1) >= 0",
		"./scripts", "P37_Strangers",
	},
	{
		"P37: a lone client is left to itself",
		"scripts/line.lua", "waiting > 1", "waiting > 0",
		"./scripts", "P37_Nobody",
	},
	{
		"P37: nobody in the line hears, and nobody else",
		"scripts/release.lua", "if called == 1 and not refused then", "if true then",
		"./scripts", "P37_Nobody",
	},
	{
		"P37: who is forced is not told",
		"scripts/release.lua", "known >= 0 and ", "",
		"./scripts", "P37_Nobody",
	},
	{
		"P37: who leaves last tells nobody",
		"scripts/leave.lua", "if called == 0 then", "if false then",
		"./scripts", "P37_Nobody",
	},
	{
		"P37: a client forces a hold open as if it were its own",
		"internal/engine/force.go", "scripts.NotTheHolder", "0",
		"./rlock", "P37_",
	},
	{
		"P29: the dead are passed without a bound",
		"scripts/line.lua", "from >= (first and 690 or 682)", "from >= 100000",
		"./scripts", "P29_",
	},
	{
		"P29: a call that has reached its bound says that nobody is there",
		"scripts/line.lua", "return (#dead >= 682 and not refused) and 2 or 0", "return 0",
		"./scripts", "P29_",
	},
	{
		"P29: a release does not say that it has reached the bound",
		"scripts/reply.go", "More: n[1] == boundReached, Score", "Score",
		"./scripts", "P29_",
	},
	{
		"P29: leave does not say that it has reached the bound",
		"scripts/reply.go", "Answer{More: value == boundReached}", "Answer{}",
		"./scripts", "P29_",
	},
	{
		"P31: who leaves a held lock's line tells nobody",
		"scripts/leave.lua", "if removed == 1 then", "if false then",
		"./scripts", "P31_",
	},
	{
		"P31: a copy of leave tells everybody again",
		"scripts/leave.lua", "if removed == 1 then", "if true then",
		"./scripts", "P31_",
	},
	{
		"P35: a late copy of a release enters the line",
		"scripts/release.lua", "remove(lock, field)\n  if", "remove(lock, field)\n  if verdict ~= 1 and (again or '') ~= '' then enter(line, again, '') end\n  if",
		"./scripts", "P35_",
	},
	{
		"P35: a late copy of a release calls while the lock is held",
		"scripts/release.lua", "redis.pcall('EXISTS', lock) == 0", "true",
		"./scripts", "P35_",
	},
	{
		"P36: a client enters the line behind a hold that does not learn of it",
		"scripts/acquire.lua", "type(redis.pcall('HINCRBY', lock, holder .. '#', '0')) ~= 'table'", "true",
		"./scripts", "P36_",
	},
	{
		"Inv9, P36: the second field of a hold that ran out meanwhile stays",
		"scripts/acquire.lua", "marked and left == -1", "false",
		"./scripts", "Inv9_AMark",
	},
	{
		"P36: a release never looks at the line",
		"scripts/release.lua", "not (again or second)", "not again",
		"./scripts", "P36_",
	},
	{
		"P36: a client enters the line although it cannot mark the hold",
		"scripts/wait.lua", "if ticket ~= '' and calls then", "if ticket ~= '' then",
		"./scripts", "P36_",
	},
	{
		"P36: a hold that took the lock in turn does not look at the line",
		"internal/engine/lockstate.go", "ls.contention == nil || !ls.contention.place.Entered()", "true",
		"./rlock", "P36_",
	},
	{
		"P36: each release looks at the line",
		"internal/engine/line.go", "if h.uncontended && ", "if false && ",
		"./rlock", "P36_",
	},
	{
		"P27: the first in the line is a stranger to itself",
		"internal/line/message.go", "n.listeners-own, now", "n.listeners, now",
		"./rlock", "P27_",
	},
	{
		"P32: a call is lost with its caller",
		"internal/engine/queue.go", "(!keeps || asks && time.Since(ls.sentAt) >= youngAttempt) {\n\t\tls.client.commands.TakeBack(underWay)\n\t\tls.command, ls.state = nil, resting\n", "true {\n\t\tls.client.commands.TakeBack(underWay)\n\t\tls.command, ls.state = nil, watching\n",
		"./rlock", "P32_",
	},
	{
		"P36: a hold that was passed on does not look at the line",
		"internal/engine/lockstate.go", "\t\th.uncontended = h.share == nil && (ls.contention == nil || !ls.contention.place.Entered())\n\t}\n", "\t}\n\th.uncontended = ls.contention == nil || !ls.contention.place.Entered()\n",
		"./rlock", "P36_",
	},
	{
		"P27: a client that has let others have the lock listens on",
		"internal/engine/lockstate.go", "\t\tls.stopListening() // it listened", "\t\t// it listened",
		"./rlock", "P27_",
	},
	{
		"P32: who takes the lock by a look tells nobody",
		"scripts/line.lua", "if look == '1' then -- this client", "if false then -- this client",
		"./rlock", "P32_LeasesRunOut",
	},
	{
		"P35: a release that finds nothing calls nobody",
		"scripts/release.lua", "if verdict == 0 and redis", "if false and redis",
		"./scripts", "P35_",
	},
}
