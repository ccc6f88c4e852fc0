package breaks

// Waiters, the asker, handoffs, and what a client tells.
var ofWaiters = []Break{
	{
		Name:  "Inv12: one try rides errors out for as long as a waiter",
		Edits: []Edit{{"internal/engine waiter.tryOnce", "min(onceMore, w.client.set.Patience)", "w.client.set.Patience"}},
		Pkg:   "./rlock", Run: "Inv12_OneTry",
	},
	{
		Name: "Inv12: a call that does not wait has no bound but its lease", Short: "wait-unbounded",
		Edits: []Edit{{"internal/engine waiter.askOnce", "min(w.lease, rest)", "max(w.lease, rest)"}},
		Pkg:   "./rlock", Run: "Inv12_NoAnswer",
	},
	{
		Name:  "Inv12: a proxy that has lost its server ends a call",
		Edits: []Edit{{"scripts answered", "return !strings.HasPrefix(said.Error(), proxyLost)", "return true"}},
		Pkg:   "./rlock", Run: "Inv12_WhatPasses",
	},
	{
		Name:  "Inv12: a call that has got the lock as its context ended does not say why that ended",
		Edits: []Edit{{"internal/engine waiter.untilDone", "err = w.contextEnded()", "err = w.ctx.Err()"}},
		Pkg:   "./internal/engine", Run: "Inv12_TheContextEnds",
	},
	{
		Name:  "Inv12: a call asks for a lock whose hold its holder has lost, before it says so",
		Edits: []Edit{{"internal/engine waiter.run", "if err := own.Err(); err != nil { return nil, err", "if err := own.Err(); err != nil && false {\nreturn nil, err"}},
		Pkg:   "./rlock", Run: "Inv12_CallsAfterALoss",
	},
	{
		Name:  "Inv12: nobody is told of a nested call with the outer context",
		Edits: []Edit{{"internal/room Room.look", "r.suspect()", ""}},
		Pkg:   "./rlock", Run: "NestedCallWithTheOuterContext",
	},
	{
		Name:  "P6: a waiter's attempt is waited for when its lease is over",
		Edits: []Edit{{"internal/room Room.ask", "r.await(asking)", "r.await(asking)\nr.asker.due = r.now.Add(time.Hour)"}},
		Pkg:   "./rlock", Run: "P6_AttemptThatHangs",
	},
	{
		Name:  "P7: an answer that comes after its copy was given up counts for nothing",
		Edits: []Edit{{"internal/command Sender.Do", "if f.Err == nil {", "if false {"}},
		Pkg:   "./rlock", Run: "P7_AnswersOfEarlier",
	},
	{
		Name:  "Inv8, P10: a confirmation wakes nobody",
		Edits: []Edit{{"pubsub link.wake", "for _, s := range ch.subs { s.wake(!confirmed, text) }", "for _, s := range ch.subs {\nif !confirmed {\ns.wake(true, text)\n}\n}"}},
		Pkg:   "./pubsub", Run: "Wake|Broken|Resubscribe",
	},
	{
		Name:  "Inv8, P10: a silent connection is trusted for ever",
		Edits: []Edit{{"pubsub link.write", "case quiet >= 2*silence && pinged:", "case false:"}},
		Pkg:   "./pubsub", Run: "Silent",
	},
	{
		Name: "Inv9: the channel is never given up", Short: "channel-kept",
		Edits: []Edit{{"pubsub link.unwanted", "(ch.drop || time.Since(ch.idle) >= linger)", "time.Since(ch.idle) >= 1000*linger"}},
		Pkg:   "./pubsub", Run: "GivenUp",
	},
	{
		Name:  "Inv9: a lock state lingers for ever",
		Edits: []Edit{{"internal/room Room.rest", "r.linger(lingerTime)", "r.linger(365 * 24 * time.Hour)"}},
		Pkg:   "./rlock", Run: "LineLingers|Books",
	},
	{
		Name:  "P41: who enters an empty line says nothing",
		Edits: []Edit{{"scripts/turn.lua stand", "redis.pcall(publish, line .. ':waited', '')", "local _ = publish"}},
		Pkg:   "./rlock", Run: "P41_TheHolderHears",
	},
	{
		Name:  "P41: a client tells nobody who has a permit or reads of a call of its own",
		Edits: []Edit{{"internal/engine lockState.answered", "ls.tellShares()", ""}},
		Pkg:   "./rlock", Run: "P41_CallsOfTheSame",
	},
	{
		Name:  "P41: a holder asks once",
		Edits: []Edit{{"internal/engine waited.askAgain", "w.timer.Reset(asksWaited)", "_ = 0"}},
		Pkg:   "./rlock", Run: "P41_AMessageThatIsLost",
	},
	{
		Name:  "P39: a renewal waits for the trace",
		Edits: []Edit{{"internal/engine Client.renewalDone", "c.tell(func() { c.set.Trace.RenewalDone(e) })", "c.set.Trace.RenewalDone(e)"}},
		Pkg:   "./rlock", Run: "P39_Functions",
	},
	{
		Name:  "P39: an outbox has no bound",
		Edits: []Edit{{"internal/tell Outbox.Add", "len(o.calls) >= maxCalls", "len(o.calls) >= 1<<20"}},
		Pkg:   "./internal/tell", Run: "P39_",
	},
	{
		Name:  "P15, Inv8: the waiter is not told that Redis does not answer its transfer",
		Edits: []Edit{{"internal/room Room.gaveUpPass", "r.asker.claim.doubt, r.asker.underWay = true, 0 r.ask()", ""}},
		Pkg:   "./rlock", Run: "HandoffWithoutAnAnswer",
	},
	{
		Name:  "P15: a handoff without an answer begins a series anew",
		Edits: []Edit{{"internal/engine lockState.registerHold", "Got: h.passedOn", "Got: o.handedOver"}},
		Pkg:   "./rlock", Run: "P15_ASeries",
	},
	{
		Name:  "Inv8: the next call of a client sleeps, although the one before has sent nothing",
		Edits: []Edit{{"internal/room Room.lead", "case r.asker.state == resting || !r.inLine():", "case !r.inLine():"}},
		Pkg:   "./internal/engine", Run: "Inv8_TheWaitEnds",
	},
	{
		Name:  "Inv8: a call takes the news along whose attempt is taken back",
		Edits: []Edit{{"internal/room Room.keepForNext", "a.underWay, a.state = 0, resting", "a.underWay, a.state = 0, watching"}},
		Pkg:   "./internal/room", Run: "TestStories",
	},
	{
		Name:  "P15: WithHandoffs bounds nothing",
		Edits: []Edit{{"internal/room run.next", "r.passes >= most ||", ""}},
		Pkg:   "./rlock", Run: "HandoffsAreBoundedByCount",
	},
	{
		Name: "Inv12: no wait is longer than the lease", Short: "wait-lease",
		Edits: []Edit{{"internal/engine Lock.acquire", "context.WithTimeout(ctx, r.Wait)", "context.WithTimeout(ctx, min(r.Wait, w.lease))"}},
	},
	{
		Name: "P12: Close does not wake those who wait", Short: "close-asleep",
		Edits: []Edit{{"internal/engine Client.Close", "c.notifyAll()", ""}},
	},
	{
		Name: "P10: a waiter relies on messages", Short: "no-poll",
		Edits: []Edit{
			{"internal/engine MakeSettings", "Poll: time.Second", "Poll: time.Hour"},
			{"rlock WithPollInterval", "s.Poll = d", "s.Poll = time.Hour"},
		},
	},
	{
		Name:  "a leader tells nobody that its term begins",
		Edits: []Edit{{"leader Election.campaign", "e.engine().TellTerm()", ""}},
		Pkg:   "./leader", Run: "WatchByMessages",
	},
	{
		Name:  "a pair that passes is shown as clients that wait in a circle",
		Edits: []Edit{{"observe/inspect owner.blocks", "o.For > next.For", "true"}},
		Pkg:   "./observe/inspect", Run: "TestCycles$", Says: "a hold that is younger than its client's wait",
	},
}
