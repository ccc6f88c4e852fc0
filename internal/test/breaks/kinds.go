package breaks

// Semaphores and read-write locks.
var ofKinds = []Break{
	{
		Name:  "P43: copies of an attempt for a permit are sent",
		Edits: []Edit{{"scripts batcher.watch", "} else if op.isSentOnce() {", "} else if false {"}},
		Pkg:   "./scripts", Run: "P43_NoCopies",
	},
	{
		Name:  "P43, P8: an answer is late after 0.3 s, however far Redis is",
		Edits: []Edit{{"scripts pace.silence", "min(max(silentAfter, 2*time.Duration(p.nanoseconds.Load())), maxSilentAfter)", "silentAfter"}},
		Pkg:   "./rlock", Run: "P43_FarFromRedis",
	},
	{
		Name: "P43, P8: an answer to an earlier PING ends the wait for an attempt",
		Edits: []Edit{
			{"scripts Scripts.alive", "if !found.alive || !found.began.Before(since) {", "if true {"},
			{"scripts prober.search", " || l.alive && l.began.Before(since)", ""},
		},
		Pkg: "./rlock", Run: "P43_ALinkThatBecomesSlow",
	},
	{
		Name: "Inv1: a semaphore gives a slot too many", Short: "slot-many",
		Edits: []Edit{{"fenced NewSemaphore", "name, permits, optionsOf(opts)", "name, permits+1, optionsOf(opts)"}},
	},
	{
		Name:  "P44: who takes a permit does not call the next one",
		Edits: []Edit{{"scripts/permit.lua others", "verdict == 1 and closed(last) == 0", "false"}},
		Pkg:   "./fenced", Run: "P44_TwoReleases",
	},
	{
		Name:  "P44: the second in the line does not know when a slot comes free by itself",
		Edits: []Edit{{"scripts/permit.lua others", "value[2] < 2", "value[2] < 1"}},
		Pkg:   "./fenced", Run: "P44_TheSecondLooks",
	},
	{
		Name: "P45: the release of a permit calls who waits for the lock of its slot", Short: "permit-elsewhere",
		Edits: []Edit{{"internal/engine permits.take", "w.keys.PermitIn(slot)", "l.keys"}},
		Pkg:   "./fenced", Run: "SemaphoreServesInOrder",
	},
	{
		Name:  "P45: a try for a permit passes those who wait",
		Edits: []Edit{{"internal/engine waiter.askOnce", "w.kind.shared() && w.client.usesLine()", "false"}},
		Pkg:   "./fenced", Run: "P45_ATryDoesNotPassWhoWaits",
	},
	{
		Name:  "P5: the context of a permit outlives the hold that it was taken in",
		Edits: []Edit{{"internal/engine Lock.HoldWithin", "l.hold(ctx, ctx, r)", "l.hold(ctx, holder.NewHolder(ctx), r)"}},
		Pkg:   "./fenced", Run: "P5_DoWithinAHold",
	},
	{
		Name:  "P30: who releases a permit without a line leaves it to nobody",
		Edits: []Edit{{"internal/engine hold.unregister", "h.of.happened(*released)", ""}},
		Pkg:   "./fenced", Run: "P30_OthersComeFirstWithoutALine",
	},
	{
		Name:  "P46: a read lock has no key of its own",
		Edits: []Edit{{"scripts/readwrite.lua beginRead", "redis.pcall('SET', ownKey(lock, field), '1', 'PX', lease)", "{ok = 'OK'}"}},
		Pkg:   "./fenced", Run: "P46_TheLongestLease",
	},
	{
		Name:  "P46, P30: the reader's key is before the prefix of a hook",
		Edits: []Edit{{"scripts/readwrite.lua ownKey", "string.sub(lock, 1, ahead) .. '{' .. name .. '}'", "'{' .. lock .. '}'"}},
		Pkg:   "./rlock", Run: "P30_AllKeys",
	},
	{
		Name:  "Inv12: the error of a missing right does not name the keys of readers",
		Edits: []Edit{{"scripts explain", "keys.side != NoSide && h.hint == rights", "false"}},
		Pkg:   "./rlock", Run: "Inv12_ReadersKeys",
	},
	{
		Name:  "P47: the phase is a number",
		Edits: []Edit{{"scripts/readwrite.lua beginRead", "phase = 't' .. string.format('%.0f', token)", "phase = string.format('%.0f', token)"}},
		Pkg:   "./fenced", Run: "P47_WhatIsInTheHash",
	},
	{
		Name:  "P48: the phase has no more than 14 digits, as Lua writes a number",
		Edits: []Edit{{"scripts/readwrite.lua beginRead", "'t' .. string.format('%.0f', token)", "'t' .. string.format('%.14g', token)"}},
		Pkg:   "./fenced", Run: "P48_TokensOfPhasesWithAFloor",
	},
	{
		Name:  "P48: with a floor readers join a phase from before a failover",
		Edits: []Edit{{"scripts/readwrite.lua beginRead", "(id == '' or of == id) and kept or ''", "kept or ''"}},
		Pkg:   "./scripts", Run: "P48_AStartEndsAPhaseWithAFloor",
	},
	{
		Name:  "P48: who may not ask for the replication id ends a phase with a floor",
		Edits: []Edit{{"scripts/readwrite.lua beginRead", "(id == '' or of == id)", "of == id"}},
		Pkg:   "./scripts", Run: "P48_WithoutTheRightToINFO",
	},
	{
		Name: "P48: who reads takes no token", Short: "read-token",
		Edits: []Edit{{"scripts/readwrite.lua beginRead", "token, why = take(counter, expiry)", "token = tonumber(redis.call('GET', counter) or 0)"}},
		Pkg:   "./fenced", Run: "P48_TokensOfPhases",
	},
	{
		Name:  "P49: who reads does not call the next one",
		Edits: []Edit{{"scripts/readwrite_wait.lua onward", "local called, any = forward('read', line, publish)", "local called, any = 0, false"}},
		Pkg:   "./fenced", Run: "P50_AWriterIsNotPassed",
	},
	{
		Name:  "P50: who reads passes a writer that waits",
		Edits: []Edit{{"scripts/readwrite_wait.lua inTurn", "if mine and (not head or head == ticket) then", "if mine and (not head or head == ticket or reads(field)) then"}},
		Pkg:   "./fenced", Run: "P50_AWriterIsNotPassed",
	},
	{
		Name:  "Inv12: a call whose wait ends as it may read says that Redis is silent",
		Edits: []Edit{{"internal/engine lockState.verdict", "(o.err != command.ErrSilence || 2*now.Sub(sent) > now.Sub(w.began))", "sent.Before(now)"}},
		Pkg:   "./fenced", Run: "Inv12_TheWaitEndsAsOthersRead",
	},
	{
		Name:  "P43: what replicas have not confirmed is asked for again with its field",
		Edits: []Edit{{"internal/room Room.claimAnew", "a == nil || a.Held ||", "a == nil ||"}},
		Pkg:   "./fenced", Run: "P43_WhatReplicas",
	},
	{
		Name:  "P49: calls of one client that wait to read ask one after the other",
		Edits: []Edit{{"internal/room Room.leave", "r.askBeside()", ""}},
		Pkg:   "./fenced", Run: "P49_AllCallsOfAClientReadAtOnce",
	},
	{
		Name:  "P52: calls of one holder that read beside each other end each other's holds",
		Edits: []Edit{{"internal/engine waiter.mayReenter", "own.lock.kind.together() || own.ReentryCount(w.under) > 0", "own.ReentryCount(w.under) > 0"}},
		Pkg:   "./fenced", Run: "P52_CallsOfOneHolder",
	},
	{
		Name:  "P52: a level with a longer lease does not extend",
		Edits: []Edit{{"internal/engine side.reenter", "h.remaining(time.Now()) >= w.lease", "true"}},
		Pkg:   "./fenced", Run: "P52_ALevelWithALongerLease",
	},
	{
		Name:  "P42: a renewal shortens the lease of a reader",
		Edits: []Edit{{"scripts/readwrite_renew.lua", "math.max(left, lease)", "lease"}},
		Pkg:   "./scripts", Run: "P42_ReadWrite",
	},
	{
		Name:  "P37: a reader that is forced out while others read is not told",
		Edits: []Edit{{"scripts/readwrite_release.lua", "known < 0 and announce(channel, publish, '0') or 0", "0"}},
		Pkg:   "./scripts", Run: "P37_ReleaseByForceWhileOthersRead",
	},
	{
		Name:  "P52: the write lock unlocks a level that reads",
		Edits: []Edit{{"internal/engine Lock.Unlock", "side != l.keys.Side()", "side != l.keys.Side() && !lv.OtherSide"}},
		Pkg:   "./fenced", Run: "P52_ReadWithin",
	},
	{
		Name:  "P53: a renewal does not look for the key of the reader",
		Edits: []Edit{{"scripts/readwrite_renew.lua", "if there == 0 or left == -2 then", "if there == 0 then"}},
		Pkg:   "./fenced", Run: "P53_RenewalFindsBoth",
	},
	{
		Name:  "P55: a writer that is gone keeps readers out",
		Edits: []Edit{{"scripts/readwrite_wait.lua listening", "for _ = 1, 690 do", "for _ = 1, 0 do"}},
		Pkg:   "./scripts", Run: "P55_",
	},
	{
		Name:  "P55: a frozen writer is asked for no sign of life",
		Edits: []Edit{{"scripts/readwrite_wait.lua firstOf", "elseif now and asks then", "elseif now and asks and open(mode, waitsToRead(now)) then"}},
		Pkg:   "./fenced", Run: "P55_TheWriterIsFrozen",
	},
	{
		Name:  "P54: a renewal of a reader runs with one of its keys",
		Edits: []Edit{{"scripts Scripts.renewArgs", "keys > 0 && holds[0].reads()", "false"}},
		Pkg:   "./scripts", Run: "P54_NoWriter",
	},
	{
		Name: "P49: who reads comes beside a writer", Short: "read-beside",
		Edits: []Edit{{"scripts/readwrite.lua open", "return mode == '' or (mode == 'read' and toRead)", "return mode == '' or toRead"}},
	},
}
