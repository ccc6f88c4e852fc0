package breaks

// What holds are, how long they last, and who has them.
var ofHolds = []Break{
	{
		Name:  "Inv1: a call that learns late that it had the lock ends the hold that has it",
		Edits: []Edit{{"internal/engine lockState.registerHold", "old != nil && now.Before(ls.takenAt)", "false"}},
		Pkg:   "./rlock", Run: "Inv1_ForcedOpen",
	},
	{
		Name:  "Inv1: any call of the holder re-enters",
		Edits: []Edit{{"internal/holder Level.reaches", "if lv == target {", "if true {"}},
		Pkg:   "./rlock", Run: "WorkersExclude",
	},
	{
		Name:  "Inv1: a question without an answer is not asked again",
		Edits: []Edit{{"watchdog Watchdog.fly", "case r.Length == 0 && err != nil:", "case false:"}},
		Pkg:   "./rlock", Run: "Inv1_Question",
	},
	{
		Name:  "Inv1: a re-entry opens a level of a hold that was lost meanwhile",
		Edits: []Edit{{"internal/holder Hold.Open", "case h.end != nil: lv.end(h.end) return nil, h.end.withoutLock()", ""}},
		Pkg:   "./rlock", Run: "Inv1_ReentryOf",
	},
	{
		Name:  "Inv1: the former holder's context lives on while the lock is passed on",
		Edits: []Edit{{"internal/holder Hold.Close", "lv.end(&EndError{Lock: h.lock.Name, Err: ErrUnlocked}) if", "later, _ := context.WithTimeout(context.Background(), 1e6)\ncontext.AfterFunc(later, func() { lv.end(&EndError{Lock: h.lock.Name, Err: ErrUnlocked}) })\nif"}},
		Pkg:   "./rlock", Run: "HandoffIsOneCommand",
	},
	{
		Name: "Inv6: a renewal that fails is not tried again", Short: "renews-once",
		Edits: []Edit{{"watchdog Watchdog.fly", "w.put(l, min(soon, w.countOf(l.deadline.Load().mono)))", "_ = soon\nw.put(l, w.countOf(l.deadline.Load().mono))"}},
	},
	{
		Name: "Inv3, P6: the deadline counts from the reply", Short: "deadline-reply",
		Edits: []Edit{{"internal/engine hold.takenBy", "sentAt: f.SentAt", "sentAt: watchdog.Now()"}},
		Pkg:   "./rlock", Run: "DeadlineCounts",
	},
	{
		Name:  "Inv7: an Unlock after a failed acquire releases the hold outside",
		Edits: []Edit{{"internal/engine Lock.Acquire", "return holder.Failed(ctx, &l.id), 0, err", "return ctx, 0, err"}},
		Pkg:   "./rlock", Run: "Inv7_UnlockAfterAFailedAcquire",
	},
	{
		Name:  "Inv7: Unlock needs a context that lives",
		Edits: []Edit{{"internal/engine unlock", "lost := h.lost(now)", "if ctx.Err() != nil {\nreturn ctx.Err()\n}\nlost := h.lost(now)"}},
		Pkg:   "./rlock", Run: "UserCancels|DoContextEnds|Inv7_",
	},
	{
		Name:  "Inv11, P4: a dropped holder is renewed for ever",
		Edits: []Edit{{"internal/holder Hold.Renewed", "if h.owner() != nil {", "if h.owner() != nil || true {"}},
		Pkg:   "./rlock", Run: "P4_DroppedHolder",
	},
	{
		Name:  "Inv11: Check trusts a hold whose context has ended",
		Edits: []Edit{{"internal/holder Level.Err", "return lv.outerContextError()", "return nil"}},
		Pkg:   "./rlock", Run: "HelperThatEndsItsContext|OnlyTheLevelsOwnContext",
	},
	{
		Name:  "Inv6: each of several locks is waited for as long as all of them",
		Edits: []Edit{{"internal/engine TakeAll", "if each.Wait -= time.Since(began); each.Wait < minWait {", "if _ = began; each.Wait < minWait {"}},
		Pkg:   "./rlock", Run: "DoAllHasOneBudget",
	},
	{
		Name: "P1: the number in the field is used again", Short: "number-again",
		Edits: []Edit{{"internal/engine Client.fieldOf", "c.lastField.Add(1)", "c.lastField.Load()"}},
		Pkg:   "./rlock", Run: "P1_",
	},
	{
		Name:  "P2: re-entries all have the same number",
		Edits: []Edit{{"internal/engine plain.reenter", "count, h.changes.next()), tokens))", "count, h.changes.latest+1), tokens))"}},
		Pkg:   "./rlock", Run: "P2_|ManyReentries",
	},
	{
		Name: "P5: only the watchdog sees that the lease is over", Short: "clock-unseen",
		Edits: []Edit{{"internal/holder holdContext.Err", "h.Lease.PassedAt(now) {", "h.Lease.PassedAt(now) && h == nil {"}},
		Pkg:   "./rlock", Run: "ErrLooksAtTheClock",
	},
	{
		Name:  "Inv12: an Unlock that finds a string at the lock's key does not say that the hold was lost",
		Edits: []Edit{{"internal/engine hold.releaseForAll", "if err != nil && !scripts.OtherType(err) {", "if err != nil {"}},
		Pkg:   "./rlock", Run: "HoldsLostToAString",
	},
	{
		Name:  "Inv12: a re-entry with a token that finds a string at the lock's key leaves the hold",
		Edits: []Edit{{"internal/engine plain.reenter", "w.client.dog.Ask(&h.Lease)", ""}},
		Pkg:   "./rlock", Run: "ReentryWithATokenAndAString",
	},
	{
		Name:  "P11: an Unlock with the outer context releases the newest level",
		Edits: []Edit{{"internal/engine Lock.levelFor", "if lv != nil { return lv, nil }", ""}},
		Pkg:   "./rlock", Run: "WrongOrder|SecondUnlock",
	},
	{
		Name:  "P42: a hold ends with the context of its Acquire",
		Edits: []Edit{{"internal/engine Lock.Hold", "under := context.WithoutCancel(ctx)", "under := ctx"}},
		Pkg:   "./rlock", Run: "P42_AHoldOutlives",
	},
	{
		Name:  "P42: an acquire is of the holder of its context",
		Edits: []Edit{{"internal/engine Lock.Hold", "who == nil || !r.Reenter {", "who == nil {"}},
		Pkg:   "./rlock", Run: "P42_AcquireIsOfANewHolder",
	},
	{
		Name:  "P42: an extension is not noted",
		Edits: []Edit{{"internal/engine hold.extend", "c.dog.Extend(&h.Lease, answer.sent, lease)", ""}},
		Pkg:   "./rlock", Run: "P42_Extend$",
	},
	{
		Name:  "P4: a holder that wanted to know who waits asks on after Close",
		Edits: []Edit{{"internal/engine waited.askAgain", "|| isClosed(w.lockState.client.closed)", ""}},
		Pkg:   "./rlock", Run: "P4_AClosedClientIsGarbage",
	},
	{
		Name: "P42: the answer to a renewal undoes a later Extend", Short: "extend-forgotten",
		Edits: []Edit{{"watchdog Watchdog.fly", "if renewed.After(*l.deadline.Load()) {", "if true {"}},
		Pkg:   "./rlock", Run: "P42_ARenewal",
	},
	{
		Name: "P42: a renewal that reaches Redis behind an Extend undoes it", Short: "extend-undone",
		Edits: []Edit{{"scripts/renew.lua", "math.max(left, lease)", "lease"}},
		Pkg:   "./rlock", Run: "P42_ARenewal",
	},
	{
		Name: "P2: each third re-entry fails", Short: "third-fails",
		Edits: []Edit{{"scripts/level.lua level", "if there == 0 then", "if tonumber(lease) > 0 and tonumber(op) % 3 == 0 then return nil, redis.error_reply('ERR the third') end if there == 0 then"}},
	},
	{
		Name: "P4: nothing is renewed", Short: "watchdog-off",
		Edits: []Edit{{"internal/engine hold.Renewal", "if renewed {", "if false && renewed {"}},
	},
	{
		Name: "P6: a lease is counted on the wall clock alone", Short: "wall-clock",
		Edits: []Edit{
			{"watchdog Deadline.passed", "now.at.Sub(start) >= d.mono || now.at.UnixNano() >= d.wall || d.boot != 0 && now.boot >= d.boot", "now.at.UnixNano() >= d.wall"},
			{"watchdog Deadline.Passed", "|| d.boot != 0 && bootClock() >= d.boot", ""},
			{"watchdog Watchdog.tick", "d.passed(instant) || l.round(w.countOf(d.mono)) <= now {", "d.passed(instant) {"},
		},
	},
	{
		Name: "P57: a hold that ends by MaxHold is not released",
		Edits: []Edit{
			{"internal/engine hold.overdue", "said, err := h.releaseForAll(now, c.set.UnlockTimeout, \"\", false)", "said, err := 0, error(nil)"},
			{"internal/engine hold.overdue", "h.unregister(&said)", "_ = said"},
		},
		Pkg: "./rlock", Run: "P57",
	},
	{
		Name:  "P58: an exported hold is passed on locally",
		Edits: []Edit{{"internal/engine hold.offers", " || h.exported.Load() != nil", ""}},
		Pkg:   "./rlock", Run: "P58",
	},
	{
		Name:  "P58: an import that is not confirmed is given up",
		Edits: []Edit{{"internal/engine waiter.tryOnce", "again, unconfirmed = true, false", ""}},
		Pkg:   "./rlock", Run: "P58",
	},
	{
		Name:  "P58: an exported hold beyond the bound of those that are followed is not followed",
		Edits: []Edit{{"internal/engine lockState.followHold", " && h.exported.Load() == nil", ""}},
		Pkg:   "./rlock", Run: "P58",
	},
	{
		Name:  "P11: a lock that was taken within a hold which is imported is renewed",
		Edits: []Edit{{"internal/holder Level.outerContextError", " && !errors.Is(why, ErrImported)", ""}},
		Pkg:   "./rlock", Run: "P58",
	},
	{
		Name:  "P58: nobody is told that an import makes the lease shorter",
		Edits: []Edit{{"scripts/import.lua", "left > tonumber(lease)", "false"}},
		Pkg:   "./rlock", Run: "P58",
	},
	{
		Name:  "P58: the own import of a share does not end it",
		Edits: []Edit{{"internal/engine Client.importedOwn", "old.lose(takenText, true)", ""}},
		Pkg:   "./rlock", Run: "P58",
	},
	{
		Name:  "P3: what an exported hold has sent without an answer is not released",
		Edits: []Edit{{"internal/engine hold.loseUntold", "h.leaveAttempts()", ""}},
		Pkg:   "./rlock", Run: "P58",
	},
	{
		Name:  "P58: nobody is told of an import",
		Edits: []Edit{{"scripts/import.lua", "if verdict == 1 then", "if verdict == 7 then"}},
		Pkg:   "./rlock", Run: "P58",
	},
	{
		Name:  "P58: the release of an imported hold calls nobody",
		Edits: []Edit{{"internal/engine lockState.registerHold", " && w.request.imports == nil", ""}},
		Pkg:   "./rlock", Run: "P58",
	},
	{
		Name:  "P58: a hold that was exported is garbage",
		Edits: []Edit{{"internal/engine Held.Export", "held: *h, ", ""}},
		Pkg:   "./rlock", Run: "P58",
	},
	{
		Name:  "P58: an import of a permit that had no answer is repeated with another field",
		Edits: []Edit{{"internal/engine lockState.tryAnew", "w.request.imports == nil && ", ""}},
		Pkg:   "./rlock", Run: "P58",
	},
	{
		Name: "P57: the release of a hold that MaxHold has ended is told to the state of another lock",
		Edits: []Edit{
			{"internal/engine hold.endAfter", "h.of.addUser()", ""},
			{"internal/engine hold.overdue", "defer h.of.removeUser()", ""},
			{"internal/engine hold.stopMaxHold", "h.of.removeUser()", ""},
		},
		Pkg: "./rlock", Run: "P57",
	},
	{
		Name: "P57: MaxHold of a hold that was unlocked releases the hold that took over from it within the process",
		Edits: []Edit{
			{"internal/engine hold.overdue", "if !h.loseUntold(ErrMaxHold.Error(), false) { return", "if h.loseUntold(ErrMaxHold.Error(), false); false { return"},
			{"internal/engine hold.unregister", "h.stopMaxHold()", ""},
		},
		Pkg: "./rlock", Run: "P57",
	},
}
