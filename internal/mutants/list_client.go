package main

// ofClient are the breaks of what a client tells its user.
var ofClient = []mutant{
	{
		"Inv12: a wait of some nanoseconds is waited for",
		"rlock/acquire.go", "	if r.wait > 0 && r.wait < minWait {\n", "	if false {\n",
		"./fenced", "WaitsThatNobodyMeans",
	},
	{
		"Inv12: a lock that nobody made is used",
		"rlock/unlock.go", "	if err := l.checkMade(); err != nil {\n		return nil, err\n	}\n", "",
		"./fenced", "LocksThatNobodyMade",
	},
	{
		"DESIGN 3: ordinary contention is taken for a nested call",
		"rlock/stand.go", ">= h.trace.length()", ">= 0",
		"./rlock", "VirtualContentionIsNoNestedCall",
	},
	{
		"DESIGN 3: nobody is told of a nested call with the outer context",
		"rlock/stand.go", "		s.suspect()\n", "",
		"./rlock", "VirtualNestedCallWithTheOuterContext",
	},
	{
		"Inv11: Check trusts a hold whose context has ended",
		"rlock/lock.go", "	return lv.hold, lv.outlived()\n", "	return lv.hold, nil\n",
		"./rlock", "VirtualHelperThatEndsItsContext|VirtualOnlyTheLevelsOwnContext",
	},
	{
		"Inv11: an explicit lease was lost because of its context",
		"rlock/hold.go", "		if lv.kept {\n			why = lv.outlived()\n		}\n", "		why = lv.outlived()\n",
		"./rlock", "VirtualOnlyTheLevelsOwnContext",
	},
	{
		"P3: what looks like a refusal has left nothing",
		"rlock/trace.go", "	t.taken = t.taken || t.refused\n", "",
		"./rlock", "P3_AHookThatFailsAfterTheCommand",
	},
	{
		"Inv12: a call does not look why a dial failed",
		"rlock/dials.go", "			d.failed.Store(&dialFailure{time.Now(), err})\n", "",
		"./rlock", "VirtualRefusedWithinAShortWait",
	},
	{
		"Inv12: a refused connection of before is why a call has waited in vain",
		"rlock/dials.go", "f != nil && !f.at.Before(t)", "f != nil",
		"./rlock", "VirtualNoRefusalOfBefore",
	},
	{
		"lines that were held back are forgotten",
		"rlock/log.go", "	m.heldBack = 0\n", "	m.heldBack, n = 0, 0\n",
		"./rlock", "LogIsThrottled",
	},
	{
		"every line is logged",
		"rlock/log.go", "	if m != nil {\n		m.last", "	if false {\n		m.last",
		"./rlock", "LogIsThrottled",
	},
	{
		"the default log is that of the time of New",
		"rlock/log.go", "newThrottle(func() slog.Handler { return slog.Default().Handler() }", "newThrottle(slog.Default().Handler",
		"./rlock", "LogDefault",
	},
	{
		"Inv12: a repeat that ran out of time hides what Redis said before",
		"rlock/await.go", "			said = err\n", "",
		"./rlock", "InsistSays",
	},
}
