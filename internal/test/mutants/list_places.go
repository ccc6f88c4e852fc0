package main

// The breaks of the places in the line: who is in the line, where, and for how long.
var ofPlaces = []mutant{
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
		"P22: a client that comes back to a free lock is at the end when the first one is looked for",
		"scripts/line.lua", "enter(line, ticket, place) --", "--",
		"./scripts", "P22_",
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
		"P20: a client enters although it would not hear a call",
		"internal/engine/line.go", "p.Turn(time.Now(), ls.hearsCalls(), ", "p.Turn(time.Now(), true, ",
		"./rlock", "P20_",
	},
	{
		"P12: a lingering ends twice",
		"internal/engine/line.go", "\tif r == nil || r.lingerTimer == nil { // it was fired again as it ended\n", "\tif false {\n",
		"./rlock", "P12_Shutdown",
	},
	{
		"P33: there is a line where the server does not count all who listen",
		"internal/engine/line.go", "	return known && (sharded || !c.cluster)\n", "	return known && (sharded || !sharded)\n",
		"./rlock", "P33_",
	},
	{
		"P19: a leave that gets no answer is forgotten",
		"internal/engine/line.go", "\t\ttime.AfterFunc(l.pauses.Next(err, lastLeavePause), l.sendAgain)\n", "",
		"./rlock", "P19_ALeave",
	},
	{
		"P19: a leave that is refused is forgotten, and its ticket stays",
		"internal/engine/line.go", "	case (refused || scripts.Passing(err)) &&", "	case (refused && false || scripts.Passing(err)) &&",
		"./rlock", "P30_TheRightIsBack",
	},
	{
		"P19: a leave that is refused is sent again also where its ticket was never in the line",
		"internal/engine/line.go", "	refused := l.stood && (", "	refused := (l.stood || true) && (",
		"./rlock", "P30_TheRightIsBack",
	},
	{
		"P19: a leave that has taken its ticket out is sent again, as it could tell nobody",
		"internal/engine/line.go", "l.stood && (a.Stays ||", "l.stood && (a.Outside ||",
		"./rlock", "P19_WhatARefusedLeaveCosts",
	},
	{
		"P30: the repeats of a leave keep its client from the lines of other locks",
		"internal/engine/line.go", "a.Outside && !l.again {", "a.Outside {",
		"./rlock", "P19_WhatARefusedLeaveCosts",
	},
	{
		"P19: a ticket stays that has entered after its call had left, where the user may not take it out",
		"internal/engine/queue.go", "ticket, underWay.Answer.Score != 0)", "ticket, false)",
		"./rlock", "P19_TheTicketEnters",
	},
	{
		"P19: a ticket stays that a release has entered after its call had left, where the user may not take it out",
		"internal/line/place.go", "return p.ticket != \"\" && (p.score != 0 || p.enteringByRelease) }", "return p.ticket != \"\" && p.score != 0 }",
		"./rlock", "P19_TheTicketEnters",
	},
	{
		"P30: who proves in vain what it may do has a line last that nobody may leave",
		"scripts/line.lua", "  if not refused then -- otherwise", "  if true then -- otherwise",
		"./rlock", "P30_TheRightIsLostForLong",
	},
	{
		"P30: a ticket stays that an attempt was not allowed to take out",
		"internal/engine/line.go", "	case refused && p.Stood():\n", "	case false:\n",
		"./rlock", "P30_TheRightIsBack",
	},
	{
		"P19: an attempt that arrives after its client has left keeps a place in the line",
		"internal/engine/queue.go", "\t\t\tunderWay.AfterFunc(func() {", "\t\t\t_ = (func() {",
		"./rlock", "P19_TheAttemptComesAfterTheLeave",
	},
}
