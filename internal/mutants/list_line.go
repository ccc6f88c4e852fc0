package main

// The breaks of the line in which clients wait, as far as it is the scripts'.
var ofLine = []mutant{
	{
		"P14: who waits for a lock in a slot that moves is told nothing, and the lock is not released",
		"scripts/op.go", "(forbidden(err) || split(err)) && op.kind.lined", "forbidden(err) && op.kind.lined",
		"./scripts", "P14_ASlotThatMovesAndTheLine",
	},
	{
		"P18: leave takes out whatever ticket the client has",
		"scripts/leave.lua", "local removed = lined('ZREM', line, ticket)",
		"local removed = 0 for _, other in ipairs(redis.pcall('ZRANGE', line, 0, -1)) do if client(other) == client(ticket) then removed = redis.pcall('ZREM', line, other) end end",
		"./scripts", "P18_",
	},
	{
		"P19: a client that has no such ticket calls nobody",
		"scripts/leave.lua", "if held == 0 then", "if held == 0 and removed == 1 then",
		"./scripts", "P19_",
	},
	{
		"P21: a newcomer's place is the time",
		"scripts/line.lua", "score = last[#last] + 1 ", "local now = redis.pcall('TIME') score = now[1] * 1000000 + now[2] ",
		"./scripts", "P21_",
	},
	{
		"P21: a repeat tells of all before the client",
		"scripts/line.lua", "math.min(tonumber(rank) or 2, 2)", "tonumber(rank)",
		"./scripts", "P21_",
	},
	{
		"P22: who had a place goes to the end",
		"scripts/line.lua", "if place ~= '' then", "if false then",
		"./scripts", "P22_",
	},
	{
		"P22: who is in the line goes to another place",
		"scripts/line.lua", "'ZADD', line, 'NX',", "'ZADD', line,",
		"./scripts", "P22_",
	},
	{
		"P22: a place may be behind the end",
		"scripts/line.lua", "math.min(score, tonumber(place))", "tonumber(place)",
		"./scripts", "P22_",
	},
	{
		"P23: the second is not told to watch",
		"scripts/line.lua", "if second then", "if false then",
		"./scripts", "P23_",
	},
	{
		"P23: the second is told only where it was read with the first",
		"scripts/line.lua", "if i == batch then", "if false then",
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
		"P27: the client that releases is a stranger",
		"scripts/line.lua", "math.max(told - known, 0)", "told",
		"./scripts", "P27_",
	},
	{
		"P27: the client that releases leaves itself out for itself",
		"scripts/line.lua", "client(head) == client(field) and told or", "",
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
		"P22: a client that comes back to a free lock is at the end when the first one is looked for",
		"scripts/wait.lua", "enter(line, ticket, place) --", "--",
		"./scripts", "P22_",
	},
	{
		"P29: the dead are passed without a bound",
		"scripts/line.lua", "for _ = 1, 5 do", "for _ = 1, 9 do",
		"./scripts", "P29_",
	},
	{
		"P29: a call that has reached its bound says that nobody is there",
		"scripts/line.lua", "return (batch == 0 or refused) and 0 or 2", "return 0",
		"./scripts", "P29_",
	},
	{
		"P29: a release does not say that it has reached the bound",
		"scripts/reply.go", "More: n[1] == boundReached, Place", "Place",
		"./scripts", "P29_",
	},
	{
		"P29: leave does not say that it has reached the bound",
		"scripts/reply.go", "Answer{More: value == boundReached}", "Answer{}",
		"./scripts", "P29_",
	},
	{
		"P30: a refused line refuses the op",
		"scripts/op.go", "	if op.lineRefused(err) {\n", "	if false {\n",
		"./scripts", "P30_WithoutTheRightToTheLine",
	},
	{
		"P30: a refused line refuses the op in company",
		"scripts/deliver.go", "case len(g) == 1 && g[0].lineRefused(err):", "case false:",
		"./scripts", "P30_WithoutTheRightToTheLine",
	},
	{
		"P30: a refused line refuses the op that is to be confirmed",
		"scripts/confirm.go", "case len(g) == 1 && g[0].lineRefused(err):", "case false:",
		"./scripts", "P30_WithoutTheRightToTheLine",
	},
	{
		"P30: nobody hears that the line was refused",
		"scripts/op.go", "	o.outside = forbidden(err)\n", "",
		"./scripts", "P30_WithoutTheRightToTheLine",
	},
	{
		"P30: a release without the line gives no tokens back",
		"scripts/op.go", "	case op.fenced:\n		o.kind = &returns\n", "",
		"./scripts", "P30_WithoutTheRightToTheLine",
	},
	{
		"P30: who may not call is refused the release",
		"scripts/line.lua", "return lined(publish, line", "return redis.call(publish, line",
		"./scripts", "P30_WithoutTheRightToTheCalls",
	},
	{
		"P30, P14: a line that cannot be read keeps the lock",
		"scripts/wait.lua", "heads = {} ", "do return nil, heads end ",
		"./scripts", "P30_WithoutTheRightToTheCalls|P14_AnotherTypeInPlace",
	},
	{
		"P30: a refused command of the line is not noticed",
		"scripts/line.lua", "    refused = true\n", "",
		"./scripts", "P30_OneCommand|P30_ReleaseWithOne",
	},
	{
		"P30: a client enters a line that it cannot leave",
		"scripts/wait.lua", "if unproven == '1' then", "if false then",
		"./scripts", "P30_OneCommand",
	},
	{
		"P30: no client tries what the line takes before it enters",
		"internal/engine/line.go", "		t.Unproven = !ls.client.lineProven.Load()\n", "",
		"./rlock", "P30_",
	},
	{
		"P30: a neighbour's refusal is everybody's",
		"scripts/batch.lua", "    refused = false\n", "",
		"./scripts", "P30_OneCommand",
	},
	{
		"P30: who is refused on the way to a free lock waits for its turn",
		"scripts/wait.lua", "if refused and verdict == 0 then", "if false then",
		"./scripts", "P30_OneCommand",
	},
	{
		"P30: a release without the line leaves its client's ticket there",
		"scripts/release.lua", "if refused and place ~= 0 then", "if false then",
		"./scripts", "P30_ReleaseWithOne",
	},
	{
		"P30: who may not leave the line calls the first there, itself",
		"scripts/leave.lua", "  if refused then\n    return 0, 0", "  if refused then\n    return 0, call(line, publish, 0, '', 0)",
		"./scripts", "P30_ReleaseWithOne",
	},
	{
		"P30: tickets that may not be taken out are passed again and again",
		"scripts/line.lua", "(batch == 0 or refused) and 0 or 2", "batch == 0 and 0 or 2",
		"./scripts", "P30_ReleaseWithOne",
	},
	{
		"P30: a handoff is refused each time, and nobody says so",
		"internal/engine/unlock.go", "if scripts.Denied(f.err) && ", "if false && ",
		"./internal/docs", "P30_OneRightLess/server/.hmget",
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
		"P32: a look does not renew the line",
		"scripts/line.lua", "#last == 0 or added == 0 or", "#last == 0 or",
		"./scripts", "P32_",
	},
	{
		"P32: an old place does not renew the line",
		"scripts/line.lua", " or place ~= '' or score % 16 == 0", " or score % 16 == 0",
		"./scripts", "P32_",
	},
	{
		"P32: newcomers do not renew the line",
		"scripts/line.lua", " or score % 16 == 0", "",
		"./scripts", "P32_",
	},
	{
		"P34: names with and without braces have one line",
		"scripts/keys.go", "return \"fencelock_line_of:\" + name", "return \"fencelock_line:\" + name",
		"./scripts", "P34_",
	},
	{
		"P34: a line is in another slot than its lock",
		"scripts/keys.go", "return \"fencelock_line:{\" + name + \"}\"", "return \"fencelock_line:\" + name",
		"./scripts", "P34_",
	},
	{
		"P35: a late copy of a release enters the line",
		"scripts/release.lua", "unused)\n  if", "unused)\n  if verdict ~= 1 and (again or '') ~= '' then enter(line, again, '') end\n  if",
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
		"internal/engine/acquire.go", " && w.lockState.place.Load() == nil", "",
		"./rlock", "P36_",
	},
	{
		"P36: each release looks at the line",
		"internal/engine/line.go", "if h.uncontended && ", "if false && ",
		"./rlock", "P36_",
	},
	{
		"P30: who may not enter the line is refused",
		"scripts/line.lua", "lined('ZADD'", "redis.call('ZADD'",
		"./scripts", "P30_WithoutTheRightToTheCalls",
	},
	{
		"P7: a user who may not make it expire begins a line",
		"scripts/line.lua", "    lined('PEXPIRE', line, 600000) -- who", "    redis.pcall('PEXPIRE', line, 600000) -- who",
		"./scripts", "P7_NoLine",
	},
	{
		"P8: a replica says that it is another's turn",
		"scripts/wait.lua", "local written = redis.pcall('HDEL', lock, field) -- removes nothing, but a replica answers READONLY and not \"it is another client's turn\"",
		"local written = 0",
		"./scripts", "P8_AReplicaGivesNoAnswerAboutTheLine",
	},
	{
		"P14: somebody else's data in place of the line ends a release",
		"scripts/line.lua", "local heads = lined('ZRANGE', line, #dead", "local heads = redis.call('ZRANGE', line, #dead",
		"./scripts", "P14_AnotherTypeInPlace",
	},
	{
		"P20: a client enters although it would not hear a call",
		"internal/engine/line.go", "	if live {\n", "	if live || true {\n",
		"./rlock", "P20_",
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
		"P27: the first in the line is a stranger to itself",
		"internal/engine/place.go", "\tn.listeners -= known\n", "",
		"./rlock", "P27_",
	},
	{
		"P32: a call is lost with its caller",
		"internal/engine/place.go", "	p.notice.lost = p.ticket != \"\"\n", "",
		"./rlock", "P32_",
	},
	{
		"P36: a hold that was passed on does not look at the line",
		"internal/engine/acquire.go", "h.uncontended = begins && b == nil", "h.uncontended = b == nil",
		"./rlock", "P36_",
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
		"P12: a lingering ends twice",
		"internal/engine/line.go", "\tif r == nil || r.lingerTimer == nil { // it was fired again as it ended\n", "\tif false {\n",
		"./rlock", "P12_Shutdown",
	},
	{
		"P27: a client that has let others have the lock listens on",
		"internal/engine/lockstate.go", "\t\tls.stopListening() // it listened", "\t\t// it listened",
		"./rlock", "P27_",
	},
	{
		"P25: a call with a short wait does not hear a Redisson client",
		"internal/engine/refused.go", " || w.endsSoon())", ")",
		"./rlock", "P25_",
	},
	{
		"P32: who takes the lock by a look tells nobody",
		"scripts/wait.lua", "if look == '1' then -- this client", "if false then -- this client",
		"./rlock", "P32_LeasesRunOut",
	},
	{
		"P32: a newcomer behind ghosts looks late",
		"internal/engine/refused.go", "w.watchFor(p.watchFromBehind())", "w.watchFor(w.client.set.Poll)",
		"./rlock", "P32_Ghosts",
	},
	{
		"P35: a release that finds nothing calls nobody",
		"scripts/release.lua", "if verdict == 0 and redis", "if false and redis",
		"./scripts", "P35_",
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
	{
		"P33: there is a line where the server does not count all who listen",
		"internal/engine/line.go", "	return known && (sharded || !c.cluster)\n", "	return known && (sharded || !sharded)\n",
		"./rlock", "P33_",
	},
	{
		"P19: an attempt that arrives after its client has left keeps a place in the line",
		"internal/engine/wait.go", "			w.command.leaveAfter(w.client.newLeave(w.keys, ticket))\n", "",
		"./rlock", "P19_TheAttemptComesAfterTheLeave",
	},
}
