package main

// The breaks of what becomes of a hold that is over, and that a server without the latest data has all the same.
var ofOver = []mutant{
	{
		"P38: a hold that is over keeps its own client from the lock",
		"internal/engine/over.go", "over := field != \"\" && ls.client.owns(field) && ls.ends == c.ends && !ls.has(field)", "over := false",
		"./rlock", "P38_AHoldThatIsOver",
	},
	{
		"P38: one try does not wait for the release of its client's hold that is over",
		"internal/engine/acquire.go", "return lv, refusal, again || passing", "return lv, refusal, passing",
		"./rlock", "P38_AHoldThatIsOver",
	},
	{
		"P38: an answer from before the end of a hold is taken for news",
		"internal/engine/over.go", " && ls.ends == c.ends", "",
		"./internal/engine", "P38_AnAnswer",
	},
	{
		"P38: each answer has the release sent again",
		"internal/releases/releaser.go", "if r.attempts.Field == field {", "if false {",
		"./internal/engine", "P38_AnAnswer",
	},
	{
		"P38: the hold that is there is released",
		"internal/engine/over.go", "is(ls.hold) || ", "",
		"./rlock", "P38_AHoldThatIsThere",
	},
	{
		"P38: what one try has taken is released before its call hears of it",
		"internal/engine/over.go", "\tfor w := ls.trying; w != nil; w", "\tfor w := ls.trying; w != nil && false; w",
		"./rlock", "P38_AHoldThatIsThere",
	},
	{
		"P38: what a waiter has taken is released before its call hears of it",
		"internal/engine/over.go", " || ls.asker != nil && is(ls.claim.hold) {", " {",
		"./rlock", "P38_AHoldThatIsThere",
	},
	{
		"P38: a hold that was lost by the client's clock is released before Redis ends it",
		"internal/engine/over.go", "ls.past != nil && is(ls.past.lost) || ", "",
		"./internal/engine", "P38_WhoHasAField",
	},
	{
		"P38: a connection that has ended is no sign of another server",
		"internal/engine/lately.go", " || err != nil && scripts.Stale(err)", "",
		"./rlock", "P38_Others",
	},
	{
		"P38: the client does not look at what it is told of its own holds",
		"internal/engine/client.go", "\tif a.Own != \"\" {\n\t\tc.releaseOver(keys, a.Own)\n\t}\n", "",
		"./rlock", "P38_Others",
	},
	{
		"P38: locks are not noted when they are released",
		"internal/engine/client.go", "\t\tc.lately.note(h.keys)\n", "",
		"./rlock", "P38_Others",
	},
	{
		"P38: a release after the first sign of another server is not asked for",
		"internal/engine/lately.go", "\t\tc.asksAgain.Store(false)\n\t\tc.askLately()\n", "",
		"./rlock", "P38_AReleaseAfter",
	},
	{
		"P38: a lock is asked for once",
		"internal/engine/lately.go", "one.asked.age() > askedFor", "true",
		"./rlock", "P38_TwoServers",
	},
	{
		"P38: a full set has no room for the newest lock",
		"internal/engine/lately.go", "\tset[l.next%latelyWays] = latelyReleased{keys: keys}\n", "",
		"./internal/engine", "P38_Lately",
	},
	{
		"P38: a dial to another address is no sign of another server",
		"internal/dials/dials.go", "\t\td.moves.Add(1)\n", "",
		"./internal/dials", "P38_ADial",
	},
}
