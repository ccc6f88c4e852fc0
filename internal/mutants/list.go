package main

// The breaks, by the invariant (Inv, DESIGN's section 5) or the protocol rule (P) that each violates. The scripts have
// more of their own, which TestMutants in package scripts runs against the model.
var mutants = []mutant{
	{
		"Inv1: a re-entry looks whether it is admitted before it waits for its turn only",
		"rlock/acquire.go", "	if !h.admits(a.ctx) {\n		return nil, errOvertaken\n	}\n", "",
		"./rlock", "P2_ReentriesAtOnce|WorkersOnAnOuterHold|WorkersExclude",
	},
	{
		"Inv1: any call of the holder re-enters",
		"rlock/hold.go", "return newest != nil && levelOf(ctx).reaches(newest)", "return newest != nil",
		"./rlock", "WorkersExclude",
	},
	{
		"Inv2: the token is read, not taken",
		"scripts/acquire.lua", "token = redis.call('INCR', KEYS[2]) -- first", "token = tonumber(redis.call('GET', KEYS[2]) or 0) + 1 -- first",
		"./scripts", "Model|Sequence|P9_",
	},
	{
		"Inv3, P6: the deadline counts from the reply",
		"rlock/acquire.go", "lv := a.hold(sent, got.value.Token)", "lv := a.hold(watchdog.Now(), got.value.Token)",
		"./rlock", "VirtualDeadlineCounts",
	},
	{
		"Inv3, P6: the deadline has no margin",
		"watchdog/deadline.go", "trust := length - margin(length)", "trust := length",
		"./rlock", "VirtualExplicitLease|VirtualErrLooks",
	},
	{
		"Inv6: a call waits for Redis, not for its context",
		"rlock/await.go", "	case <-ctx.Done():\n	case <-stop:\n	}\n	select {", "	case <-stop:\n	}\n	select {",
		"./rlock", "Inv6_",
	},
	{
		"Inv7: Unlock needs a context that lives",
		"rlock/unlock.go", "bound := max(min(c.unlockTimeout, h.remaining()), time.Millisecond)\n	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), bound)\n	defer cancel()\n	released", "bound := max(min(c.unlockTimeout, h.remaining()), time.Millisecond)\n	ctx, cancel := context.WithTimeout(ctx, bound)\n	defer cancel()\n	released",
		"./rlock", "UserCancels|DoContextEnds|Inv7_",
	},
	{
		"Inv7, P12: Unlock may take any time",
		"rlock/unlock.go", "bound := max(min(c.unlockTimeout, h.remaining()), time.Millisecond)\n	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), bound)\n	defer cancel()\n	released", "bound := 20 * time.Second\n	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), bound)\n	defer cancel()\n	released",
		"./rlock", "Inv7_",
	},
	{
		"Inv8: a leader that gives up keeps the message to itself",
		"rlock/queue.go", "		if !took {\n			q.nudge()\n		}\n", "",
		"./rlock", "NextLeaderSleeps",
	},
	{
		"Inv8, P10: a confirmation wakes nobody",
		"pubsub/link.go", "	for s := range ch.subs {\n		s.wake()\n	}\n}\n\n// restart", "	for s := range ch.subs {\n		if !confirmed {\n			s.wake()\n		}\n	}\n}\n\n// restart",
		"./pubsub", "Wake|Broken|Resubscribe",
	},
	{
		"Inv8, P10: a silent connection is trusted for ever",
		"pubsub/link.go", "case quiet >= 2*silence && pinged:", "case false:",
		"./pubsub", "Silent",
	},
	{
		"Inv9: the channel is never given up",
		"pubsub/link.go", "time.Since(ch.idle) >= linger", "false",
		"./pubsub", "GivenUp",
	},
	{
		"Inv9: the client's books keep the lock",
		"rlock/hold.go", "		h.queue.done()\n", "",
		"./rlock", "Inv9_",
	},
	{
		"P10: a hold that is forced open by another client learns of it at its renewal",
		"rlock/hold.go", "func (h *hold) Settled() { h.queue.follow(h) }", "func (h *hold) Settled() {}",
		"./rlock", "ForcedOpenByAnother",
	},
	{
		"Inv10: a renewal brings back what is gone",
		"scripts/renew.lua", "  if type(there) == 'table' then", "  if there == 0 then\n    redis.call('HSET', lock, field, 1)\n    redis.call('PEXPIRE', lock, lease)\n    return nil\n  end\n  if type(there) == 'table' then",
		"./rlock", "Inv10_",
	},
	{
		"Inv11, P4: a dropped holder is renewed for ever",
		"rlock/hold.go", "	if h.holder.Value() != nil {\n		return h.client.lease\n	}", "	if h.holder.Value() != nil || true {\n		return h.client.lease\n	}",
		"./rlock", "VirtualDroppedHolder",
	},
	{
		"Inv11, P4: the watchdog keeps the holder alive",
		"rlock/level.go", "	parent := context.Background()\n	switch", "	parent := ctx\n	switch",
		"./rlock", "DroppedHolder",
	},
	{
		"Inv11: a level is renewed although its context has ended",
		"rlock/hold.go", "	if lv.signal.Err() == nil {\n		return true\n	}", "	if lv.kept {\n		return true\n	}",
		"./rlock", "EndedContextIsNotRenewed",
	},
	{
		"P1: the number in the field is used again",
		"rlock/client.go", "c.numbers.Add(1)", "c.numbers.Load()",
		"./rlock", "P1_",
	},
	{
		"P2: re-entries all have the same number",
		"rlock/acquire.go", "	h.op++\n	op, count := h.op, len(h.levels)+1", "	op, count := h.op+1, len(h.levels)+1",
		"./rlock", "P2_|ManyReentries",
	},
	{
		"P3: what got no answer is forgotten",
		"rlock/acquire.go", "		a.client.behind.release(a.trace)\n", "",
		"./rlock", "P3_GhostOf",
	},
	{
		"P3: one release is enough",
		"rlock/behind.go", "	b.next(t, lease, n+1)\n", "	delete(b.open, t)\n",
		"./rlock", "P3_",
	},
	{
		"P5: only the watchdog sees that the lease is over",
		"rlock/level.go", "		if !c.level.hold.passed() {\n			return nil\n		}", "		return nil",
		"./rlock", "ErrLooksAtTheClock",
	},
	{
		"P6: a repeated re-entry counts from the repeat",
		"rlock/acquire.go", "	return a.client.scripts.Level(ctx, a.keys, token, h.field, a.lease, count, op)", "	sent = watchdog.Now()\n		return a.client.scripts.Level(ctx, a.keys, token, h.field, a.lease, count, op)",
		"./rlock", "VirtualRepeatedReentry",
	},
	{
		"P9: a stable token changes",
		"rlock/acquire.go", "token := a.fenced && !(h.stable && h.token != 0)", "token := a.fenced",
		"./fenced", "Stable",
	},
	{
		"P11: an Unlock with the outer context releases the newest level",
		"rlock/unlock.go", "	if lv := levelOf(ctx).of(l.client, l.name); lv != nil {\n		return lv, nil\n	}\n", "",
		"./rlock", "WrongOrder|SecondUnlock",
	},
	{
		"P12: ForceUnlock deletes whatever is there",
		"scripts/unlock.lua", "if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then", "if redis.call('EXISTS', KEYS[1]) == 0 then",
		"./rlock", "P12_|P1_",
	},
	{
		"P12: an Unlock that finds nothing says nil",
		"rlock/unlock.go", "	if !released && !doubt {\n", "	if !released && !doubt && c == nil {\n",
		"./rlock", "P12_",
	},
	{
		"P13: go-redis repeats commands by itself",
		"scripts/run.go", "func (command) NoRetry() bool { return true }", "func (command) NoRetry() bool { return false }",
		"./rlock", "P13_",
	},
	{
		"P16: names whose keys are in two slots are taken in a cluster",
		"rlock/lock.go", "		return l.keys.CheckCluster()", "		return nil",
		"./rlock", "ClusterNames",
	},
}
