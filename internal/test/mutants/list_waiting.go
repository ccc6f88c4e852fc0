package main

// The breaks of what a client does in the line.
var ofWaiting = []mutant{
	{
		"P19: a client that is called for a place that it has not got keeps silent",
		"internal/engine/news.go", "\t\t\t\tls.client.leaveLine(ls.contention.keys, ghost)\n", "",
		"./rlock", "P19_",
	},
	{
		"P22: a client whose connection was away enters at the end",
		"internal/line/message.go", "p.entersAgain = p.ticket != \"\" && p.score != 0 }", "p.entersAgain = false }",
		"./rlock", "P22_",
	},
	{
		"P23: a second that was told to watch the first does not",
		"internal/line/message.go", "\t\tp.notice.watch = words[2]\n", "",
		"./rlock", "P24_TheHeadIsFrozen",
	},
	{
		"P24: who waits for the first one never takes it out",
		"internal/line/refused.go", "\treturn p.calledTicket\n", "\treturn \"\"\n",
		"./rlock", "P24_TheHeadIsFrozen",
	},
	{
		"P25: the first in the line does not listen on the lock's own channel",
		"internal/engine/asker.go", "\t\t\tls.subscribe(w.keys) // and tries", "\t\t\t// and tries",
		"./rlock", "P25_",
	},
	{
		"P25: a client that was called in vain waits before it listens",
		"internal/line/refused.go", "first && (vain || firstFor", "first && (firstFor",
		"./rlock", "P25_CalledInVain",
	},
	{
		"P27: nothing is left to strangers",
		"internal/line/message.go", "return Yield, yieldTime\n", "return Ask, 0\n",
		"./rlock", "P27_",
	},
	{
		"P27: pauses that nobody uses are repeated",
		"internal/line/policy.go", "return !now.Before(y.after)", "return !now.IsZero()",
		"./rlock", "P27_",
	},
	{
		"P27: a series beside strangers is as long as any",
		"internal/engine/handoff.go", "\t\tmost = min(most, runBesideOutsiders)\n", "",
		"./rlock", "P27_Series",
	},
	{
		"P18: a client whose last caller has given up stays in the line",
		"internal/engine/line.go", "\t\tls.client.newLeave(ls.contention.keys, ticket, stood).send()\n", "\t\t_ = stood\n",
		"./rlock", "P31_",
	},
	{
		"P32: who is behind the second in the line of a free lock sleeps for twice its last stay, however long",
		"internal/line/refused.go", "return min(max(2*CalledTimeout, 2*p.lastStay), 10*poll)", "return max(2*CalledTimeout, 2*p.lastStay)",
		"./internal/line", "P32_TheLastStay",
	},
	{
		"P19: a client whose callers have gone counts as a listener, and does not hear",
		"internal/engine/line.go", "\t\tr.calls.Drop() //", "\t\tr.calls.Close() //",
		"./rlock", "P19_AGhostOf",
	},
	{
		"P19: a client leaves once more for a late message about a place that it has left",
		"internal/line/message.go", "\t\tif words[0] == \"c\" {\n", "\t\tif words[0] != \"d\" {\n",
		"./internal/line", "P19_MessagesOfAnotherStay",
	},
	{
		"P32: who is further back looks each second",
		"internal/line/policy.go", "\treturn min(max(2*l.lastStay, l.poll<<min(l.quiet, 4)), most)\n", "\treturn l.poll\n",
		"./rlock", "P32_Looks",
	},
	{
		"P32: the first in the line waits for the end of the lease only",
		"internal/line/policy.go", "\t\treturn min(ttl+time.Millisecond, l.poll<<min(l.quiet, 4), most)\n", "\t\treturn ttl + time.Millisecond\n",
		"./rlock", "P32_ShortWaits",
	},
	{
		"Inv8: each call that leads puts off the look of the one before",
		"internal/engine/asker.go", "\tcase ls.state == resting || !ls.inLine():\n\t\tls.takeTurn()\n", "\tcase ls.state == resting || !ls.inLine():\n\t\tls.takeTurn()\n\tdefault:\n\t\tls.watchFor(ls.client.set.Poll)\n",
		"./rlock", "P32_ShortWaits",
	},
	{
		"Inv9: a lock state lingers for ever",
		"internal/engine/line.go", "\t\tr.lingerTimer = time.AfterFunc(max(d, 1), ls.lingerEnded)\n", "\t\tr.lingerTimer = time.AfterFunc(24*365*time.Hour, ls.lingerEnded)\n",
		"./rlock", "LineLingers|Books",
	},
	{
		"P12: Shutdown waits for lock states that linger",
		"internal/engine/client.go", "\t\tls.endLinger()\n", "",
		"./rlock", "LineLingers",
	},
	{
		"P30: a client that does without the line keeps its place in it, and does not come",
		"internal/engine/asker.go", "\t\tls.leavePlace() //", "\t\t//",
		"./internal/engine", "P30_AClientInTheLine",
	},
	{
		"P27: a call counts for each attempt that is refused after it",
		"internal/line/refused.go", "\tp.asked, p.called, p.released = told, false, released{}\n", "\tp.asked, p.released = told, released{}\n",
		"./internal/line", "P27_ACallIsInVainOnce",
	},
	{
		"P32: a call that leads now looks as rarely as the one before it",
		"internal/engine/asker.go", "\t\tp.Told() // its looks are not those of the one before\n", "\t\t_ = p\n",
		"./internal/engine", "P32_LooksOfTheNextCall",
	},
}
