package main

// What the asker does when one waiter leaves and the next one is the first.
var ofAsker = []mutant{
	{
		"P1: each call that ends without an answer has its attempt repeated for the next one",
		"internal/engine/queue.go", "asks && time.Since(ls.sentAt) >= youngAttempt)", "asks)",
		"./internal/engine", "P1_CallsThatEnd",
	},
	{
		"P1: two calls have one attempt at several servers",
		"internal/engine/queue.go", " && !(asks && w.asksAnew())\n", "\n",
		"./internal/engine", "P1_CallsThatEnd",
	},
	{
		"Inv12: a call whose context has ended goes on asking",
		"internal/engine/asker.go", "\tif isClosed(w.bound.end) {\n", "\tif false {\n",
		"./internal/engine", "Inv12_TheContextEnds",
	},
	{
		"Inv12: a call that has got the lock as its context ended does not say why that ended",
		"internal/engine/wait.go", "\t\t\t\terr = w.contextEnded()\n", "\t\t\t\terr = w.ctx.Err()\n",
		"./internal/engine", "Inv12_TheContextEnds",
	},
	{
		"Inv12: an error that came as the context ended hides that",
		"internal/engine/wait.go", "!waits || o.err != nil && w.bound.ctx.Err() != nil:", "!waits:",
		"./internal/engine", "Inv12_TheContextEnds",
	},
	{
		"P32: the repeat of an attempt that got an error is no look",
		"internal/engine/asker.go", "\tls.contentionFor(ls.first.keys) //", "\t//",
		"./internal/engine", "P32_ALookAfter",
	},
	{
		"Inv12: a call waits for as long as the one before it, which had errors",
		"internal/engine/asker.go", "ls.state == resting || !ls.inLine():", "ls.state == resting:",
		"./internal/engine", "Inv12_ThePause",
	},
	{
		"P30: a client leaves a lock that nobody else wants to those who listen",
		"internal/engine/queue.go", "if ls.hold == nil && ls.contact == nil {", "if false {",
		"./internal/engine", "ASeries",
	},
	{
		"Inv2: a call does not learn that a hold of its holder's is lost that was taken later",
		"internal/engine/queue.go", "\t\tw.wakeup.NotifyAt(time.Now().Add(ls.client.set.Poll)) //", "\t\t//",
		"./internal/engine", "Inv2_TheHold",
	},
	{
		"Inv12: a call asks for a lock whose hold its holder has lost, before it says so",
		"internal/engine/acquire.go", "\t\tif err := own.Err(); err != nil {\n\t\t\treturn nil, err // before", "\t\tif err := own.Err(); err != nil && false {\n\t\t\treturn nil, err // before",
		"./internal/engine", "Inv12_NothingIsSent",
	},
}
