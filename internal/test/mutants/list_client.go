package main

// ofClient are the breaks of what a client tells its user.
var ofClient = []mutant{
	{
		"Inv12: a wait of some nanoseconds is waited for",
		"internal/engine/acquire.go", "	if r.Wait > 0 && r.Wait < minWait {\n", "	if false {\n",
		"./fenced", "WaitsThatNobodyMeans",
	},
	{
		"Inv12: a lock that nobody made is used",
		"internal/engine/unlock.go", "	if err := l.checkMade(); err != nil {\n		return nil, err\n	}\n", "",
		"./fenced", "LocksThatNobodyMade",
	},
	{
		"Inv12: ordinary contention is taken for a nested call",
		"internal/engine/asker.go", ">= h.attempts.LongestLease()", ">= 0",
		"./rlock", "ContentionIsNoNestedCall",
	},
	{
		"Inv12: nobody is told of a nested call with the outer context",
		"internal/engine/asker.go", "\t\t\tls.suspectNestedCall()\n", "",
		"./rlock", "NestedCallWithTheOuterContext",
	},
	{
		"Inv11: Check trusts a hold whose context has ended",
		"internal/holder/hold.go", "\treturn lv.outerContextError()\n", "\treturn nil\n",
		"./rlock", "HelperThatEndsItsContext|OnlyTheLevelsOwnContext",
	},
	{
		"Inv11: an explicit lease was lost because of its context",
		"internal/holder/hold.go", "\t\tif !lv.renewable {\n\t\t\tcontinue\n\t\t}\n", "",
		"./rlock", "OnlyTheLevelsOwnContext",
	},
	{
		"P3: what looks like a refusal has left nothing",
		"internal/releases/attempts.go", "\ta.taken = a.taken || a.refused\n", "",
		"./rlock", "P3_AHookThatFailsAfterTheCommand",
	},
	{
		"Inv12: a call does not look why a dial failed",
		"internal/dials/dials.go", "	d.failedAt, d.failure = time.Now(), err\n", "",
		"./rlock", "RefusedWithinAShortWait",
	},
	{
		"Inv12: a refused connection of before is why a call has waited in vain",
		"internal/dials/dials.go", "d.failure != nil && !d.failedAt.Before(t)", "d.failure != nil",
		"./rlock", "NoRefusalOfBefore",
	},
	{
		"lines that were held back are forgotten",
		"internal/tell/log.go", "	m.heldBack = 0\n", "	m.heldBack, n = 0, 0\n",
		"./rlock", "LogIsThrottled",
	},
	{
		"a lease that nobody was to renew is a loss in the log",
		"internal/engine/hold.go", "if how == ranOutText && why == nil", "if false && why == nil",
		"./rlock", "LogOwnLease",
	},
	{
		"each lease that runs out is no loss in the log",
		"internal/engine/hold.go", " && why == nil && !renewable {", " && (!renewable || true) {",
		"./rlock", "LogOwnLease",
	},
	{
		"every line is logged",
		"internal/tell/log.go", "	if m != nil {\n		m.last", "	if false {\n		m.last",
		"./rlock", "LogIsThrottled",
	},
	{
		"the default log is that of the time of New",
		"internal/tell/log.go", "newThrottle(func() slog.Handler { return slog.Default().Handler() }", "newThrottle(slog.Default().Handler",
		"./rlock", "LogDefault",
	},
	{
		"Inv12: a repeat that ran out of time hides what Redis said before",
		"internal/command/repeat.go", "			said = err\n", "",
		"./internal/command", "RepeatSays",
	},
	{
		"the watchdog asks about all slots of a cluster at one moment",
		"watchdog/flight.go", " && p.flying < large {", " {",
		"./watchdog", "ManySlotsAskedAtOnce|Gap",
	},
	{
		"each subscription asks whether there are sharded channels",
		"pubsub/bus.go", "	q := b.asked\n", "	q := (*question)(nil)\n",
		"./pubsub", "OneQuestionForAll",
	},
	{
		"P39: a line waits for the user's handler",
		"internal/tell/log.go", "	told := m.out.Add(func() {", "	told := func(call func()) bool { call(); return true }(func() {",
		"./rlock", "P39_Functions",
	},
	{
		"P39: a renewal waits for the trace",
		"internal/engine/trace.go", "		c.tell(func() { c.set.Trace.RenewalDone(e) })\n", "		c.set.Trace.RenewalDone(e)\n",
		"./rlock", "P39_Functions",
	},
	{
		"P39: a subscription waits for the trace",
		"internal/engine/trace.go", "		c.tell(func() { t.SubscriptionChanged(", "		func(tell func()) { tell() }(func() { t.SubscriptionChanged(",
		"./rlock", "P39_Functions",
	},
	{
		"P39: the watchdog waits for the trace",
		"internal/engine/trace.go", "c.tell(func() { c.set.Trace.HoldDone(e) }) }", "c.set.Trace.HoldDone(e) }",
		"./rlock", "P39_Functions",
	},
	{
		"P39: a waiter waits for the trace in the queue",
		"internal/engine/trace.go", "	go func() {\n		returned := false\n", "	func() {\n		returned := false\n",
		"./rlock", "P39_Functions",
	},
	{
		"P39: a call goes on whose WaitStarted has panicked",
		"internal/engine/wait.go", "\t\tcase brokenOff:\n", "\t\tcase brokenOff && false:\n",
		"./rlock", "P39_WaitStarted",
	},
	{
		"P39: a waiter that panics stays in the queue",
		"internal/engine/wait.go", "\tdefer func() { w.lockState.leave(w, lv) }()\n\tw.lockState.join(w)\n\treturn w.untilDone()\n", "\tw.lockState.join(w)\n\tlv, err = w.untilDone()\n\tw.lockState.leave(w, lv)\n\treturn lv, err\n",
		"./rlock", "P39_Context",
	},
	{
		"P39: an outbox ends with a call that ends its goroutine",
		"internal/tell/outbox.go", "			go o.run()\n		}\n	}()\n", "			_ = 0\n		}\n	}()\n",
		"./internal/tell", "P39_",
	},
	{
		"P39: an outbox has no bound",
		"internal/tell/outbox.go", "len(o.calls) >= maxCalls", "len(o.calls) >= 1<<20",
		"./internal/tell", "P39_",
	},
	{
		"Inv12: a call whose own holder has the lock is told of somebody else",
		"internal/engine/acquire.go", "	if own := w.ownHold(w.holder); own != nil && own.Err() == nil {\n		return errSameHolder\n	}\n", "",
		"./rlock", "Inv12_HeldByTheSameHolder",
	},
}
