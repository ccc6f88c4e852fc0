package main

import "slices"

// The breaks, by the invariant (Inv) or the protocol rule (P) that each violates. The scripts have
// more of their own, which TestMutants in package scripts runs against the model.
var mutants = slices.Concat(ofAttempts, ofOver, ofClient, ofLine, ofWaiting, ofQuorum, ofForce, ofServers, ofGuards, ofSilence, ofSeen, []mutant{
	{
		"Inv1: a re-entry looks whether it is admitted before it waits for its turn only",
		"internal/engine/reenter.go", "	if n := len(h.levels); n == 0 || !nearest.reaches(h.levels[n-1]) {\n		h.mu.Unlock()\n		return nil, errOvertaken\n	}\n", "	_ = nearest\n",
		"./rlock", "P2_ReentriesAtOnce|WorkersOnAnOuterHold|WorkersExclude",
	},
	{
		"Inv1: any call of the holder re-enters",
		"internal/engine/level.go", "		if lv == target {\n", "		if true {\n",
		"./rlock", "WorkersExclude",
	},
	{
		"Inv2: the token is read, not taken",
		"scripts/acquire.lua", "token, why = take(counter, tokens, expiry)", "token = (tonumber(redis.call('GET', counter) or 0) or 0) + 1",
		"./scripts", "Model|Sequence|P9_",
	},
	{
		"Inv2: a release gives tokens back although others were taken since",
		"scripts/unlock.lua", "redis.pcall('GET', counter) == last", "true",
		"./scripts", "P9_UnlockGives",
	},
	{
		"Inv2: tokens that somebody has are given back",
		"internal/engine/handoff.go", "	return b.last - b.next + 1\n", "	return b.last - b.next + 2\n",
		"./rlock", "TestBlocks",
	},
	{
		"Inv7, P12: an alarm that comes too late is left as it is",
		"internal/engine/wakeup.go", "set != 0 && set <= at {", "set != 0 {",
		"./rlock", "Inv7_|Inv8_|P12_|Inv6_",
	},
	{
		"Inv8: nobody sets the alarm again after it rang too early",
		"internal/engine/wait.go", "\tif !w.due.IsZero() {\n\t\tw.wakeup.notifyAt(w.due)\n\t}\n", "\tif !w.due.IsZero() && w.wakeup.alarmAt.Load() == 0 && w.wakeup.alarm == nil {\n\t\tw.wakeup.notifyAt(w.due)\n\t}\n",
		"./rlock", "Inv8_|Virtual|P10_|Handoff",
	},
	{
		"Inv2: a floor forgets the counter",
		"scripts/token.lua", "math.max(last, now - 1)", "now - 1",
		"./fenced", "FloorClockSetBack",
	},
	{
		"Inv2: a floor forgets the clock",
		"scripts/token.lua", "math.max(last, now - 1)", "last",
		"./fenced", "FloorSurvivesALoss",
	},
	{
		"Inv2: tokens with a floor run ahead of the clock",
		"internal/engine/handoff.go", "\t\treturn maxFlooredBlock\n", "\t\treturn maxBlock\n",
		"./rlock", "Inv2_BlocksWithAFloorAreSmall",
	},
	{
		"P3: a waiter that re-enters forgets its own attempt",
		"internal/engine/acquire.go", "(lv == nil || lv.hold.attempts != w.attempts)", "lv == nil",
		"./rlock", "P3_GhostOfAWaiterThatReenters",
	},
	{
		"Inv3: a renewal counts that no replica has",
		"scripts/scripts.go", "			hold.Err = unconfirmed\n", "			_ = unconfirmed\n",
		"./rlock", "Confirm_Renewals",
	},
	{
		"P3: what was not confirmed is not released",
		"internal/engine/attempts.go", "	if a.Held || a.Owed { // also what is not confirmed\n", "	if err == nil && a.Held || a.Owed {\n",
		"./rlock", "Confirm_NoReplicas",
	},
	{
		"Inv1: the confirmation is asked for on another connection than the acquire went over",
		"scripts/confirm.go", "	_ = pipe.Process(ctx, ask)\n	_, failed = pipe.Exec(ctx)\n", "	_, failed = pipe.Exec(ctx)\n	_ = s.rdb.Process(ctx, ask)\n",
		"./scripts", "Confirm_WhatNoReplicaHas",
	},
	{
		"Inv6: a release waits with what is to be confirmed",
		"scripts/batchers.go", "		bs = s.confirmed\n", "		_ = s.confirmed\n",
		"./scripts", "Confirm_ReleasesDoNotWait",
	},
	{
		"P14: a slot that moves ends a whole batch",
		"scripts/deliver.go", "	return forbidden(err) || split(err)\n", "	return forbidden(err)\n",
		"./scripts", "P14_ASlotThatMoves",
	},
	{
		"P14: a key without rights ends the renewals of all others",
		"scripts/deliver.go", "	return forbidden(err) || split(err)\n", "	return split(err)\n",
		"./scripts", "P14_AForbiddenKeyEnds",
	},
	{
		"P14: more renewals than one script has are not split",
		"scripts/scripts.go", "		case len(part) > 1 && (s.refused(err) || ask): //", "		case len(part) > 1 && (crossSlot(err) || ask): //",
		"./scripts", "P14_",
	},
	{
		"P14: what is to be confirmed does not follow its key",
		"scripts/confirm.go", "	return redis.IsAskError(err)\n", "	return \"\", false\n",
		"./scripts", "P14_ASlotThatMoves",
	},
	{
		"P14: the node that a key has moved to is not told that it is asked",
		"scripts/confirm.go", "	if to.asking {\n", "	if to.text && to.asking {\n",
		"./scripts", "P14_ASlotThatMoves",
	},
	{
		"a node that hangs keeps the ops of the others",
		"scripts/batchers.go", "return bs.of(on.Options().Addr)", "return bs.of(on.Options().Addr[:1])",
		"./scripts", "BatcherCluster_ANodeThatHangs|BatcherCluster_BatchersFollow",
	},
	{
		"the batchers of nodes that are gone are kept",
		"scripts/batchers.go", "if len(bs.nodes) >= maxBatchers {", "if len(bs.nodes) >= 9*maxBatchers {",
		"./scripts", "BatcherCluster_FewBatchers",
	},
	{
		"P14: a connection that is dead keeps its batch for ever",
		"scripts/batcher.go", "		case took >= b.bound:\n", "		case took >= time.Hour:\n",
		"./scripts", "Batcher_A.*Abandoned",
	},
	{
		"P3: what is abandoned is sent later",
		"scripts/batcher.go", "b.scripts.deliver(f, f.ops)", "b.scripts.deliver(context.Background(), f.ops)",
		"./scripts", "Batcher_WhatIsAbandoned",
	},
	{
		"an abandoned batch works on an op that its caller uses again",
		"scripts/batcher.go", "f.ops = append(f.ops, &f.store[len(f.store)-1])", "f.ops = append(f.ops, op)",
		"./scripts", "Batcher_ABatchThatHangsIsAbandoned",
	},
	{
		"what is answered late is answered twice",
		"scripts/hedge.go", "	case told:\n		return\n", "",
		"./scripts", "Batcher_.*Abandoned",
	},
	{
		"many ops wait for the batches before them",
		"scripts/batcher.go", "		return maxInFlight + maxExtra\n", "		return maxInFlight\n",
		"./scripts", "ManyDoNotWait$",
	},
	{
		"many ops wait for those that the last batch has woken",
		"scripts/batcher.go", "return b.shared && !b.hasMany()", "return b.shared",
		"./scripts", "ManyDoNotWaitForWhoComesBack",
	},
	{
		"P15: token blocks although there are to be no handoffs",
		"internal/engine/handoff.go", "if w.tokens.Blocks && ls.client.set.Handoffs > 0 {", "if w.tokens.Blocks {",
		"./rlock", "BlocksWithoutHandoffs",
	},
	{
		"P12: an Unlock waits for tokens beyond its bound",
		"internal/engine/handoff.go", "min(maxBlockAge, within)", "maxBlockAge",
		"./rlock", "P12_BlocksWait",
	},
	{
		"P14: an op that may not ask for the time ends its batch",
		"scripts/token.lua", "redis.pcall('TIME')", "redis.call('TIME')",
		"./scripts", "Floor_P14",
	},
	{
		"Inv2: a handoff takes a token without the floor",
		"internal/engine/handoff.go", "ls.client.newInflight(w.tokens.counted(pass), w.attempts, wake)", "ls.client.newInflight(pass, w.attempts, wake)",
		"./fenced", "FloorCounterLost",
	},
	{
		"a cluster's client is left to find out by itself that a master is down",
		"scripts/run.go", "			rdb.ReloadState(context.Background())\n", "			_ = rdb\n",
		"./scripts", "Cluster_FindsTheNewMaster",
	},
	{
		"Inv3, P6: the deadline counts from the reply",
		"internal/engine/acquire.go", "return w.begin(f.sentAt, w.lease, token, b, f.alsoNotify == nil)", "return w.begin(watchdog.Now(), w.lease, token, b, f.alsoNotify == nil)",
		"./rlock", "VirtualDeadlineCounts",
	},
	{
		"Inv3, P6: the deadline has no margin",
		"watchdog/deadline.go", "trust := length - margin(length)", "trust := length",
		"./rlock", "VirtualExplicitLease|P5_ErrLooks",
	},
	{
		"Inv6: a call waits for Redis, not for its context",
		"internal/engine/wakeup.go", "	case <-end:\n", "	case <-(chan struct{})(nil):\n",
		"./rlock", "Inv6_",
	},
	{
		"Inv7: Unlock needs a context that lives",
		"internal/engine/unlock.go", "	lost := h.lost(now)\n", "	if ctx.Err() != nil {\n		return ctx.Err()\n	}\n	lost := h.lost(now)\n",
		"./rlock", "UserCancels|DoContextEnds|Inv7_",
	},
	{
		"Inv7, P12: Unlock may take any time",
		"internal/engine/unlock.go", "	bound := max(min(h.client.set.UnlockTimeout, h.remaining(now)), time.Millisecond)\n	if", "	bound := 20*time.Second\n	if",
		"./rlock", "Inv7_",
	},
	{
		"Inv8, P10: a confirmation wakes nobody",
		"pubsub/link.go", "	for _, s := range ch.subs {\n		s.wake(!confirmed, text)\n	}", "	for _, s := range ch.subs {\n		if !confirmed {\n			s.wake(true, text)\n		}\n	}",
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
		"internal/engine/client.go", "\tc.removeUserLocked(h.lockState)\n", "",
		"./internal/engine", "Inv9_",
	},
	{
		"P10: a hold that is forced open by another client learns of it at its renewal",
		"internal/engine/hold.go", "\th.lockState.followHold(h)\n", "",
		"./rlock", "ForcedOpenByAnother",
	},
	{
		"Inv10: a renewal brings back what is gone",
		"scripts/renew.lua", "  if type(there) == 'table' then", "  if there == 0 then\n    redis.call('HSET', lock, field, 1)\n    redis.call('PEXPIRE', lock, lease)\n    return nil\n  end\n  if type(there) == 'table' then",
		"./rlock", "Inv10_",
	},
	{
		"Inv11, P4: a dropped holder is renewed for ever",
		"internal/engine/hold.go", "	if h.owner() != nil {\n", "	if h.owner() != nil || true {\n",
		"./rlock", "P4_DroppedHolder",
	},
	{
		"Inv11, P4: the watchdog keeps the holder alive",
		"internal/engine/level.go", "	lv.parent = context.Background()\n", "	lv.parent = ctx\n",
		"./rlock", "DroppedHolder",
	},
	{
		"Inv11: a level is renewed although its context has ended",
		"internal/engine/hold.go", "\treturn lv.renewable && lv.outerContextError() == nil\n", "\treturn lv.renewable\n",
		"./rlock", "EndedContextIsNotRenewed",
	},
	{
		"P1: the number in the field is used again",
		"internal/engine/client.go", "c.lastField.Add(1)", "c.lastField.Load()",
		"./rlock", "P1_",
	},
	{
		"P2: re-entries all have the same number",
		"internal/engine/reenter.go", "\th.lastChange++\n\top, count := h.lastChange, len(h.levels)+1", "\top, count := h.lastChange+1, len(h.levels)+1",
		"./rlock", "P2_|ManyReentries",
	},
	{
		"P3: what got no answer is forgotten",
		"internal/engine/acquire.go", "\t\tw.client.releaser.abandon(w.attempts)\n", "",
		"./rlock", "P3_GhostOf",
	},
	{
		"P3: one release is enough",
		"internal/engine/releaser.go", "\trl.reschedule(r, after)\n", "\trl.remove(r)\n",
		"./rlock", "P3_",
	},
	{
		"P3: failures use up the quick repeats of a release",
		"internal/engine/releaser.go", "		after = min(after, max(retryRelease-time.Since(s.sentAt), 0)) //", "		_ = retryRelease //",
		"./rlock", "P3_ReleasesAfterAnOutage",
	},
	{
		"P3: what got no answer matters for a lease, whether Redis is heard of or not",
		"internal/engine/attempts.go", "!d.heard && !crowded || a.inFlight > 0", "a.inFlight > 0",
		"./rlock", "P3_AFreeze|P15_AHandoffToAServer",
	},
	{
		"P3: that Redis gives no answer is one",
		"internal/engine/releaser.go", "s.afterAllAttempts && !scripts.Passing(err) && r.attempts.hear()", "s.afterAllAttempts && r.attempts.hear()",
		"./rlock", "P3_AFreeze",
	},
	{
		"P3: Redis is heard of by the answer to a release that was sent before the attempt had ended",
		"internal/engine/releaser.go", "s.afterAllAttempts && !scripts.Passing(err) && r.attempts.hear()", "!scripts.Passing(err) && r.attempts.hear()",
		"./internal/engine", "P3_HeardOf",
	},
	{
		"P3: when Redis is heard of again its releases go on being rare",
		"internal/engine/releaser.go", "		r.answers = 0 // what", "		_ = r.answers // what",
		"./internal/engine", "P3_QuickRepeats",
	},
	{
		"P3: releases that wait for Redis have no bound",
		"internal/engine/releaser.go", "r.attempts.matters(len(r.releaser.releases) > maxUnheard)", "r.attempts.matters(false)",
		"./internal/engine", "P3_ReleasesThatWait",
	},
	{
		"P3: a release of a hold that Redis refuses waits ever longer",
		"internal/engine/releaser.go", "	if err != nil && r.held {\n", "	if false {\n",
		"./rlock", "P3_RefusedRelease",
	},
	{
		"P12: Close sends a release that failed no second time",
		"internal/engine/client.go", "			next = now.Add(hurryAgain)\n", "			next = now.Add(time.Hour + hurryAgain)\n",
		"./rlock", "P3_ReleasesAfterAnOutage",
	},
	{
		"P3: what a given-up attempt has taken is not released as soon as it is answered",
		"internal/engine/releaser.go", "\tif r.index >= 0 && r.underWay == nil {\n", "\tif false {\n",
		"./rlock", "P3_GivenUpAcquireIsReleasedWhenAnswered",
	},
	{
		"P12: a Close that meets another one does not wait for it",
		"internal/engine/client.go", "		case <-c.closeEnded:\n", "		default:\n",
		"./rlock", "P12_CloseWhile",
	},
	{
		"P12: Close does not wait for what is under way",
		"internal/engine/client.go", "\tc.awaitReleases(ctx)\n", "\t_ = ctx\n",
		"./rlock", "P12_Close",
	},
	{
		"P12: Close waits for calls, and not for what they have taken",
		"internal/engine/client.go", "\t\tif c.underWay.Load() == 0 && !c.releaser.owesAny() ||", "\t\tif c.underWay.Load() == 0 ||",
		"./rlock", "P12_Close",
	},
	{
		"P5: only the watchdog sees that the lease is over",
		"internal/engine/level.go", "h.lease.PassedAt(now) {", "h.lease.PassedAt(now) && h == nil {",
		"./rlock", "ErrLooksAtTheClock",
	},
	{
		"P5: Err of a nested hold asks the context below it twice",
		"internal/engine/level.go", "	if passed {\n		return c.ended()\n	}\n	return nil\n", "	_ = passed\n	return c.ended()\n",
		"./rlock", "P5_QuestionsDoNotMultiply",
	},
	{
		"P5: a new holder asks twice for a value that is not there",
		"internal/engine/holder.go", "	return c.values.Value(key) //", "	if v := c.values.Value(key); v != nil {\n		return v\n	}\n	return c.Context.Value(key) //",
		"./rlock", "P5_QuestionsDoNotMultiply",
	},
	{
		"P6: a repeated re-entry counts from the repeat",
		"internal/engine/reenter.go", "\tswitch {\n\tcase err != nil:\n\t\th.correctCount()", "\tsent = watchdog.Now()\n\tswitch {\n\tcase err != nil:\n\t\th.correctCount()",
		"./rlock", "VirtualRepeatedReentry",
	},
	{
		"P9: a stable token changes",
		"internal/engine/reenter.go", "token := w.tokens.Fenced && !(h.stable && h.token != 0)", "token := w.tokens.Fenced",
		"./fenced", "Stable",
	},
	{
		"P11: an Unlock with the outer context releases the newest level",
		"internal/engine/unlock.go", "\tif lv := levelOf(ctx).levelOfLock(l.client, l.name); lv != nil {\n\t\treturn lv, nil\n\t}\n", "",
		"./rlock", "WrongOrder|SecondUnlock",
	},
	{
		"P12: ForceUnlock deletes whatever is there",
		"scripts/unlock.lua", "redis.pcall('HDEL', lock, field, field .. '#')", "redis.pcall('DEL', lock)",
		"./rlock", "P12_|P1_",
	},
	{
		"P12: an Unlock that finds nothing says nil",
		"internal/engine/unlock.go", "	if !answer.Held && !maybePassed && !maybeExecuted && answer.Copies == 0 {", "	if !answer.Held && !maybePassed && !maybeExecuted && answer.Copies == 0 && c == nil {",
		"./rlock", "P12_",
	},
	{
		"P13: go-redis repeats commands by itself",
		"scripts/run.go", "func (command) NoRetry() bool { return true }", "func (command) NoRetry() bool { return false }",
		"./rlock", "P13_",
	},
	{
		"P16: names whose keys are in two slots are taken in a cluster",
		"internal/engine/lock.go", "	return l.keys.CheckCluster()", "	return nil",
		"./rlock", "ClusterNames",
	},
	{
		"P15: a transfer without an answer is taken for one that was not executed",
		"internal/engine/unlock.go", "\treturn false, f.answer.Copies > 0 || f.err != nil && f.err != errNotSent && scripts.Unanswered(f.err)", "\treturn false, false",
		"./rlock", "HandoffFault",
	},
	{
		"P15: a transfer that takes too long is taken for one that was not executed",
		"internal/engine/unlock.go", "\t\th.lockState.cancelHandoff(f)\n\t\treturn false, true", "\t\th.lockState.cancelHandoff(f)\n\t\treturn false, false",
		"./rlock", "HandoffFault",
	},
	{
		"P15, Inv8: the waiter is not told that Redis does not answer its transfer",
		"internal/engine/unlock.go", "\t\th.lockState.cancelHandoff(f)\n", "",
		"./rlock", "HandoffWithoutAnAnswer",
	},
	{
		"Inv1: the former holder's context lives on while the lock is passed on",
		"internal/engine/unlock.go", "\tlv.end(&endError{lock: h.attempts.keys.Lock, err: ErrUnlocked})\n", "\ttime.AfterFunc(time.Millisecond, func() { lv.end(&endError{lock: h.attempts.keys.Lock, err: ErrUnlocked}) })\n",
		"./rlock", "HandoffIsOneCommand",
	},
	{
		"P15: WithHandoffs bounds nothing",
		"internal/engine/policy.go", "r.handoffs >= most || ", "",
		"./rlock", "HandoffsAreBoundedByCount",
	},
	{
		"P15: a series may last for ever",
		"internal/engine/policy.go", " || age > maxRun", "",
		"./rlock", "HandoffsAreBoundedByTime",
	},
	{
		"P9: a repeated acquire asks for another number of tokens",
		"internal/engine/handoff.go", "\tif w.tokenCount > 0 && w.attempts.uncertain() {\n\t\treturn\n\t}\n", "",
		"./rlock", "BlocksRepeatedAcquire/more_wait,_not_answered",
	},
	{
		"P9: a block is used for as long as it lasts",
		"internal/engine/handoff.go", " || b.sentAt.Age() > maxBlockAge {", " {",
		"./rlock", "BlocksAgeSoon",
	},
	{
		"P9: a block goes on after a re-entry",
		"internal/engine/handoff.go", " || h.reentered()", "",
		"./rlock", "BlocksEndWithAReentry",
	},
	{
		"P9: a block serves waiters with another lease",
		"internal/engine/handoff.go", " && w.lease == b.lease", "",
		"./rlock", "BlocksEndAtAnotherKindOfWaiter",
	},
	{
		"P9: a block serves waiters without the option",
		"internal/engine/handoff.go", "w != nil && w.tokens.Blocks && w", "w != nil && w",
		"./rlock", "BlocksEndAtAnotherKindOfWaiter",
	},
	{
		"P9: more tokens are reserved than there are waiters",
		"internal/engine/handoff.go", "\t\tw.tokenCount = min(max(int(ls.blockWaiters), 1), w.maxTokens())", "\t\tw.tokenCount = maxBlock",
		"./rlock", "BlocksAreUsedInOrder",
	},
	{
		"P9: the first token of a block is its last",
		"internal/engine/acquire.go", "\t\ttoken -= int64(w.tokenCount) - 1\n", "",
		"./rlock", "BlocksAreUsedInOrder",
	},
	{
		"P3: a granted lock that nobody takes stays",
		"internal/engine/wait.go", "\tw.attempts = b.attempts\n", "",
		"./rlock", "BlocksGrantedWaiterGivesUp$",
	},
	{
		"Shutdown does not wait for what is on its way",
		"internal/engine/client.go", "len(c.locks) == 0", "c.held == 0",
		"./rlock", "BlocksGrantDuringShutdown",
	},
	{
		"P3: what a granted waiter asked for itself is forgotten",
		"internal/engine/wait.go", "\tif w.attempts.giveUp() {\n\t\tw.client.releaser.release(w.attempts) //", "\tif w.attempts == nil {\n\t\tw.client.releaser.release(w.attempts) //",
		"./rlock", "BlocksGrantToAWaiterInDoubt",
	},
	{
		"Inv3: the lease of a granted hold counts from the grant",
		"internal/engine/acquire.go", "\tw.client.dog.Add(&h.lease, sent, lease)", "\tw.client.dog.Add(&h.lease, watchdog.Now(), lease)",
		"./rlock", "BlocksDeadline",
	},
	{
		"P2: a transfer leaves the number of the former's last change",
		"scripts/transfer.lua", "redis.pcall('HDEL', lock, old, old .. '#')", "redis.pcall('HDEL', lock, old)",
		"./rlock", "HandoffOfAHoldWithReentries",
	},
	{
		"P12: a hold uses its lock's state through its call alone",
		"internal/engine/client.go", "\tls.users++\n\treturn true\n", "\treturn true\n",
		"./rlock", "P12_LostBefore",
	},
	{
		"Inv1: a question without an answer is not asked again",
		"watchdog/flight.go", "\t\tcase r.Length == 0 && err != nil:\n", "\t\tcase false:\n",
		"./rlock", "Inv1_Question",
	},
	{
		"P7: an answer that comes after its copy was given up counts for nothing",
		"internal/engine/inflight.go", "if f.waitFor(wake, time.Now(), bound, rest.Done()) && f.err == nil {", "if f.waitFor(wake, time.Now(), bound, rest.Done()) && false {",
		"./rlock", "P7_AnswersOfEarlier",
	},
	{
		"P3: an attempt that came after its release waits for the next one",
		"internal/engine/releaser.go", "r.attempts.allAnswered() && r.attempts.mayBeTaken() {", "r.attempts.allAnswered() && false {",
		"./rlock", "P3_AttemptAfterItsRelease",
	},
	{
		"Inv12: a call with wait 0 asks once more when its context has ended",
		"internal/engine/acquire.go", "\t\tcase !sleep(w.ctx, backoff):\n", "\t\tcase !sleep(w.ctx, backoff) && false:\n",
		"./rlock", "Inv12_ContextEndsBetween",
	},
	{
		"Inv12: whoever asks late has asked since the call began",
		"internal/engine/lockstate.go", "ls.startsAskingLocked(w, time.Now())", "ls.startsAskingLocked(w, w.began)",
		"./rlock", "Inv12_WaitEndsAfter",
	},
})
