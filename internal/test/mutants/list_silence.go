package main

// The breaks of what bounds a call where Redis does not answer.
var ofSilence = []mutant{
	{
		"Inv12: a call that does not wait has no bound but its lease",
		"internal/engine/acquire.go", "min(w.lease, rest)", "max(w.lease, rest)",
		"./rlock", "Inv12_NoAnswer",
	},
	{
		"Inv12: a command that hangs outlasts the patience of its call",
		"internal/engine/asker.go", "min(w.lease, silence)", "w.lease",
		"./rlock", "Inv12_NoAnswer",
	},
	{
		"Inv12: patience begins when a command has failed, and not when it was sent",
		"internal/engine/asker.go", "ls.redisFailed(sent, err)", "ls.redisFailed(time.Now(), err)",
		"./rlock", "Inv12_NoAnswer",
	},
	{
		"Inv12: each call of a queue waits for a silent Redis as long as the first one",
		"internal/engine/asker.go", "!end.IsZero() && end.Before(ls.due)", "false",
		"./rlock", "Inv12_NoAnswer",
	},
	{
		"Inv12: the time that replicas have is taken for silence",
		"internal/engine/acquire.go", "onceMore + w.client.set.confirmTimes()", "onceMore",
		"./rlock", "Inv12_ConfirmationIsNoSilence",
	},
	{
		"Inv12: nobody says that a dial hangs",
		"internal/dials/dials.go", "time.Since(oldest.began) > time.Since(t)/2", "false",
		"./rlock", "Inv12_NoAnswer",
	},
	{
		"Inv12: silence hides what Redis has said before",
		"internal/engine/acquire.go", "if err == command.ErrSilence && said != nil {", "if false {",
		"./rlock", "P13_ExhaustedPool",
	},
	{
		"Inv12: a proxy that has lost its server ends a call",
		"scripts/errors.go", "return !strings.HasPrefix(said.Error(), proxyLost)", "return true",
		"./rlock", "Inv12_WhatPasses",
	},
	{
		"P3: what a proxy sent to a server that it has lost is taken for refused",
		"scripts/errors.go", "return !strings.HasPrefix(said.Error(), proxyLost)", "return true",
		"./scripts", "P3_AProxy",
	},
	{
		"Inv12: a server that cannot save for a moment ends a call",
		"scripts/errors.go", "	\"MISCONF\", \"no upstream host\",", "	\"no upstream host\",",
		"./rlock", "Inv12_WhatPasses",
	},
	{
		"P32: a lease that is longer than a time.Duration is not cut",
		"scripts/reply.go", "time.Duration(min(ms, MaxTTL.Milliseconds()))", "time.Duration(min(ms, (1<<63-1)/1000000))",
		"./rlock", "P32_ALeaseOfCenturies|P32_RemainTTLOf",
	},
	{
		"Inv6: a command for people waits for a frozen server longer than its context",
		"internal/engine/within.go", "detach(ctx, func()", "detach(context.Background(), func()",
		"./observe/inspect", "Inv6_Inspect",
	},
}
