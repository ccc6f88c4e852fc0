package main

// The breaks of semaphores and their permits.
var ofSemaphores = []mutant{
	{
		"P43: an attempt for a permit without an answer is repeated with its field",
		"internal/engine/share.go", "return l.client.limits.Several || !l.isPlain()", "return l.client.limits.Several",
		"./fenced", "P43_LostReply",
	},
	{
		"P43: the lock of a slot takes a permit without an answer for a hold that is over",
		"internal/engine/claim.go", "field = w.client.newSharedField(w.keys)", "field = w.client.newField()",
		"./fenced", "P43_ThePermitIsNotTaken",
	},
	{
		"P54: a script for a semaphore runs with a part of its keys",
		"scripts/keys.go", "\t\treturn k.Lock\n", "\t\treturn k.last.lock\n",
		"./scripts", "P54_NoPermit",
	},
	{
		"P43: copies of an attempt for a permit are sent",
		"scripts/hedge.go", "op.kind.ballot || op.isSentOnce()", "op.kind.ballot",
		"./scripts", "P43_NoCopies",
	},
	{
		"P43: another waiter waits for an attempt for a permit",
		"internal/engine/queue.go", "!(asks && w.asksAnew())", "true",
		"./fenced", "P43_AWaiterThatLeaves",
	},
	{
		"P44: who takes a permit does not call the next one",
		"scripts/permit.lua", "verdict == 1 and closed(last) == 0", "false",
		"./fenced", "P44_TwoReleases",
	},
	{
		"P45: the release of a permit calls who waits for the lock of its slot",
		"internal/engine/share.go", "return h.share.keys", "return h.keys",
		"./fenced", "SemaphoreServesInOrder",
	},
	{
		"P45: a lock may have the name that stands for the slots of a semaphore",
		"scripts/semaphore.go", `strings.HasSuffix(name, ":*") && strings.Contains(name, "{")`, "false",
		"./fenced", "SemaphoreBadInput",
	},
	{
		"P45: a try for a permit passes those who wait",
		"internal/engine/acquire.go", "!w.isPlain() && w.client.usesLine()", "false",
		"./fenced", "P45_ATryDoesNotPassWhoWaits",
	},
	{
		"a claim for another number of permits is taken over",
		"internal/engine/claim.go", " && c.hold.attempts.Keys.Permits() == w.keys.Permits()", "",
		"./fenced", "TwoNumbersOfPermits",
	},
	{
		"the first two in the line do not hear when a permit comes free by itself",
		"scripts/permit.lua", "value[1] = shortest(last)", "value[1] = -1",
		"./fenced", "P44_SeveralSlots",
	},
	{
		"ForceRelease calls nobody",
		"fenced/semaphore.go", "s.lock.CallFirst()", "_ = s",
		"./fenced", "ForceRelease",
	},
}
