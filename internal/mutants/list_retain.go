package main

// The breaks of what a client retains for calls that come back.
var ofRetain = []mutant{
	{
		"P15: what is retained makes a series as long as handoffs do",
		"rlock/retain.go", "q.series.handoffs >= c.handoffs/2", "q.series.handoffs >= c.handoffs",
		"./rlock", "RetainTakesOneCommand",
	},
	{
		"Inv8: what is retained for nobody stays so",
		"rlock/retain.go", "	if h != nil {\n		h.giveUp(q.client.unlockTimeout)\n	}\n	q.done()", "	_ = h\n	q.done()",
		"./rlock", "RetainForNobody",
	},
	{
		"P12: a client that would not hear of a forced open lock retains it",
		"rlock/retain.go", "	if q.sub == nil || !q.sub.Live() { // it", "	if false { // it",
		"./rlock", "RetainByAClientThatDoesNotListen",
	},
	{
		"P12: a message does not matter to what is retained",
		"rlock/retain.go", " || next.heard != q.messages.Load()", "",
		"./rlock", "RetainForcedOpen/by_itself_false",
	},
	{
		"P3: a retain that gets no answer is forgotten",
		"rlock/retain.go", "		c.releaser.release(next.trace)\n		return false, true", "		return false, true",
		"./rlock", "RetainFault",
	},
	{
		"P14: a retain that was taken back is used again",
		"rlock/retain.go", "	if err != errNotSent { // the line", "	if true { // the line",
		"./rlock", "RetainTakenBack",
	},
	{
		"P12: Close leaves what is retained",
		"rlock/client.go", "	c.forget()\n", "",
		"./rlock", "RetainAndClose/Close",
	},
	{
		"P6: what is retained does for a call with another lease",
		"rlock/retain.go", " && r.lease == other.lease", "",
		"./rlock", "RetainForAnotherCall",
	},
	{
		"Inv3: what was retained is trusted for as long as was asked for",
		"rlock/retain.go", "	lv, _, err := a.hold(r.sent, lease, h.token", "	lv, _, err := a.hold(r.sent, max(lease, a.lease), h.token",
		"./rlock", "RetainIsNotRenewed",
	},
	{
		"P5: what is retained is taken however late",
		"rlock/retain.go", " || time.Since(next.since) > 2*retainFor", "",
		"./rlock", "RetainOverslept",
	},
	{
		"Inv8: who came while the lock was about to be retained is not told",
		"rlock/retain.go", "	if goesOn && waits {", "	if false && waits {",
		"./rlock", "RetainForACallThatComesMeanwhile",
	},
	{
		"Inv9: a subscription outlives what was retained",
		"rlock/retain.go", "	q.turns.back.ends--\n	q.quiet()\n", "	q.turns.back.ends--\n",
		"./rlock", "RetainLeavesNoSubscription",
	},
	{
		"P12: Close lets the queue go of what it gives up",
		"rlock/retain.go", "			h.giveUp(c.unlockTimeout)\n			q.done()\n", "			q.done()\n			h.giveUp(c.unlockTimeout)\n",
		"./rlock", "RetainCloseKeepsTheQueue",
	},
	{
		"Inv1: what is retained does for a call although the client has another hold",
		"rlock/retain.go", " || q.hold != nil {\n		return r", " {\n		return r",
		"./rlock", "RetainGoneAndTaken",
	},
	{
		"what is retained goes to who comes before it goes to the line",
		"rlock/retain.go", "	if q.turns == nil || q.first != nil {", "	if q.turns == nil {",
		"./rlock", "RetainIsForTheLineFirst",
	},
	{
		"what was retained for another kind of call is taken for another holder's",
		"rlock/retain.go", "r.hold == nil && !a.waits() {", "r.hold == nil && false {",
		"./rlock", "RetainForATryOfAnotherKind",
	},
}
