package breaks

// The line of clients, and whom a release tells.
var ofLine = []Break{
	{
		Name: "P10: a release is told to nobody", Short: "release-silent",
		Edits: []Edit{
			{"scripts/unlock.lua announce", "local told = redis.pcall(publish, channel, '0')", "local told = 1"},
			{"scripts/line.lua tell", "return lined(publish, line .. ':' .. client(ticket), message)", "return 1"},
		},
	},
	{
		Name: "P29: a release calls the first client, also where nobody listens for it", Short: "called-dead",
		Edits: []Edit{{"scripts/line.lua call", "if heard == 0 then", "if heard == 0 and first then"}},
	},
	{
		Name: "P32: the first client does not look at the end of a lease", Short: "first-polls",
		Edits: []Edit{{"internal/line lookPolicy.next", "return min(ttl+time.Millisecond, l.poll<<min(l.quiet, 4), most)", "return min(l.poll<<min(l.quiet, 4), most)"}},
	},
	{
		Name: "P32: all in a line ask all the time", Short: "line-asks",
		Edits: []Edit{{"internal/line lookPolicy.next", "return min(max(2*l.lastStay, l.poll<<min(l.quiet, 4)), most)", "return CalledTimeout"}},
	},
	{
		Name: "P18: a client whose last caller has given up stays in the line", Short: "ticket-left",
		Edits: []Edit{{"internal/room Room.leavePlace", "r.emit(Effect{Do: LeaveLine, Ticket: ticket, Stood: stood})", "_ = stood"}},
		Pkg:   "./rlock", Run: "P31_",
	},
	{
		Name:  "P19: a client that has no such ticket calls nobody",
		Edits: []Edit{{"scripts/leave.lua", "if held == 0 then", "if held == 0 and removed == 1 then"}},
		Pkg:   "./scripts", Run: "P19_",
	},
	{
		Name:  "P19: a leave that gets no answer is forgotten",
		Edits: []Edit{{"internal/engine leaveOp.Answered", "time.AfterFunc(l.pauses.Next(err, lastLeavePause), l.sendAgain)", ""}},
		Pkg:   "./rlock", Run: "P19_ALeave",
	},
	{
		Name:  "P19: an attempt that arrives after its client has left keeps a place in the line",
		Edits: []Edit{{"internal/room Room.overtaken", "p == nil || !p.Has(ev.Ticket)", "p == nil"}},
		Pkg:   "./rlock", Run: "P19_TheAttemptComesAfterTheLeave",
	},
	{
		Name:  "P19: an attempt that arrives after the next one has the lock keeps a place in the line",
		Edits: []Edit{{"internal/room Room.overtaken", "r.asker.overtakes = true", ""}},
		Pkg:   "./internal/room", Run: "TestStories",
	},
	{
		Name:  "P19: a release that arrives after its client has left keeps a place in the line",
		Edits: []Edit{{"internal/room Room.released", "r.others.place.EnteredByRelease(ev.Ticket, ev.Score) {", "r.others.place.EnteredByRelease(ev.Ticket, ev.Score) && false {"}},
		Pkg:   "./rlock", Run: "P19_TheReleaseComesAfterTheLeave",
	},
	{
		Name: "P19: a client that is called for a place that it has not got keeps silent", Short: "called-ghost",
		Edits: []Edit{{"internal/room Room.hear", "r.emit(Effect{Do: LeaveLine, Ticket: ghost})", ""}},
		Pkg:   "./rlock", Run: "P19_",
	},
	{
		Name:  "P20: a client enters although it would not hear a call",
		Edits: []Edit{{"internal/room Room.turn", "r.others.place.Turn(r.now, r.hearsCalls(),", "r.others.place.Turn(r.now, true,"}},
		Pkg:   "./rlock", Run: "P20_",
	},
	{
		Name:  "P21: a newcomer's place is the time",
		Edits: []Edit{{"scripts/line.lua enter", "if score < 0 then", "if true then"}},
		Pkg:   "./scripts", Run: "P21_",
	},
	{
		Name:  "P22: who had a place goes to the end",
		Edits: []Edit{{"scripts/line.lua enter", "if place ~= '' then", "if false then"}},
		Pkg:   "./scripts", Run: "P22_",
	},
	{
		Name:  "P23: the second is not told to watch",
		Edits: []Edit{{"scripts/line.lua call", "local heard = tell(", "local heard = first and 1 or tell("}},
		Pkg:   "./scripts", Run: "P23_",
	},
	{
		Name: "P23: the second in a line does not watch the first", Short: "second-sleeps",
		Edits: []Edit{{"internal/line Place.Heed", `return Watch, p.watch(n.watch, "", now)`, "return Nothing, 0"}},
	},
	{
		Name:  "P24: the first is dropped on any look",
		Edits: []Edit{{"scripts/turn.lua headOf", "not (late or head == stale)", "not (late or look == '1')"}},
		Pkg:   "./scripts", Run: "P24_",
	},
	{
		Name:  "P8: a replica calls the first client",
		Edits: []Edit{{"scripts/turn.lua ask", "type(lined('ZREM', line, '')) == 'number' and clock()", "clock()"}},
		Pkg:   "./scripts", Run: "P8_AReplicaGivesNo",
	},
	{
		Name:  "P24: who was asked and does not come stays in the line",
		Edits: []Edit{{"scripts/turn.lua headOf", "not (late or head == stale)", "head ~= stale"}},
		Pkg:   "./rlock", Run: "P24_WhoIsGone",
	},
	{
		Name:  "P24: the first alone is asked",
		Edits: []Edit{{"scripts/turn.lua", "step, most = 8796093022208, 8", "step, most = 8796093022208, 1"}},
		Pkg:   "./rlock", Run: "P24_WhoIsGone",
	},
	{
		Name:  "P24: who was asked is out although it has come",
		Edits: []Edit{{"scripts/turn.lua stand", "if asked and not came then", "if false then"}},
		Pkg:   "./scripts", Run: "^TestSequences_Scripts",
	},
	{
		Name:  "P24: who was asked is out before its time is over",
		Edits: []Edit{{"scripts/turn.lua comesWithin", "tonumber(string.match(ticket, '^[^:]*:[^:]*:(%d+)$') or 0), 100)", "0, 100)"}},
		Pkg:   "./rlock", Run: "P24_AFarClientKeepsItsPlace",
	},
	{
		Name:  "P24: a call that lasts for less than 0.2 s asks nobody",
		Edits: []Edit{{"internal/room Room.turn", "t.Look = t.Look || !t.Called && !stood && r.endsWithin(&r.asker.queue[0], Soon)", "_ = stood"}},
		Pkg:   "./rlock", Run: "P24_WhoIsGone",
	},
	{
		Name:  "P24: who is dropped is not told",
		Edits: []Edit{{"scripts/turn.lua headOf", "tell(line, publish, head, 'd ' .. head)", ""}},
		Pkg:   "./scripts", Run: "P24_",
	},
	{
		Name:  "P24: who watches a far client gives it no longer than a near one",
		Edits: []Edit{{"internal/line Place.overdue", "now.Sub(p.calledSince) < timeToComeOf(p.calledTicket)", "now.Sub(p.calledSince) < CalledTimeout"}},
		Pkg:   "./internal/line", Run: "P24_TheTimeOfAFarClient",
	},
	{
		Name:  "P24: a called client that is frozen has a second",
		Edits: []Edit{{"internal/line timeToComeOf", "time.Millisecond, CalledTimeout)", "time.Millisecond, maxCalledTimeout)"}},
		Pkg:   "./rlock", Run: "P24_TheHeadIsFrozen",
	},
	{
		Name:  "P24: a client that was asked for a sign of life, and is frozen, has a second",
		Edits: []Edit{{"scripts/turn.lua comesWithin", "or 0), 100), 1000)", "or 0), 1000), 1000)"}},
		Pkg:   "./rlock", Run: "P24_WhoIsGone",
	},
	{
		Name:  "P24: an answer from before makes the second watch a first one that is alive",
		Edits: []Edit{{"internal/line Place.watchUnlessAlive", "if p.alive {", "if false {"}},
		Pkg:   "./internal/line", Run: "P24_Alive",
	},
	{
		Name:  "P25: a call with a short wait does not hear a Redisson client",
		Edits: []Edit{{"internal/line Place.Refused", "|| endsSoon)", ")"}},
		Pkg:   "./rlock", Run: "P25_",
	},
	{
		Name:  "P26: who is not first tries when it hears of a release",
		Edits: []Edit{{"internal/line Place.Behind", `p.ticket != ""`, `p.ticket == "all"`}},
		Pkg:   "./internal/line", Run: "P26_",
	},
	{
		Name:  "P27: the client that releases is a stranger",
		Edits: []Edit{{"scripts/line.lua call", "math.max(told - known, 0)", "told"}},
		Pkg:   "./scripts", Run: "P27_",
	},
	{
		Name:  "P27: a series beside strangers is as long as any",
		Edits: []Edit{{"internal/room Room.most", "return min(passes, besideOutsiders)", ""}},
		Pkg:   "./rlock", Run: "P27_Series",
	},
	{
		Name:  "P28: a newcomer does not call a lone head",
		Edits: []Edit{{"scripts/turn.lua headOf", "not second or", ""}},
		Pkg:   "./scripts", Run: "P28_",
	},
	{
		Name:  "P29: a call that has reached its bound says that nobody is there",
		Edits: []Edit{{"scripts/line.lua call", "return (#dead >= 682 and not refused) and 2 or 0", "return 0"}},
		Pkg:   "./scripts", Run: "P29_",
	},
	{
		Name:  "P30: a refused line refuses the op",
		Edits: []Edit{{"scripts Scripts.do", "if op.lineRefused(err) {", "if false {"}},
		Pkg:   "./scripts", Run: "P30_WithoutTheRightToTheLine",
	},
	{
		Name:  "P30: who may not call is refused the release",
		Edits: []Edit{{"scripts/line.lua tell", "return lined(publish, line", "return redis.call(publish, line"}},
		Pkg:   "./scripts", Run: "P30_WithoutTheRightToTheCalls",
	},
	{
		Name:  "P30: a client is in a line that the server cannot call",
		Edits: []Edit{{"scripts/line.lua lined", "'not allowed from script', 'is disabled'", "'no words'"}},
		Pkg:   "./rlock", Run: "P30_TheServerDoesNotPublish",
	},
	{
		Name:  "P30: a client enters a line that it cannot leave",
		Edits: []Edit{{"scripts/turn.lua stand", "if unproven ~= '' then", "if false then"}},
		Pkg:   "./scripts", Run: "P30_OneCommand",
	},
	{
		Name:  "P30: a client that no message reaches is in the line",
		Edits: []Edit{{"scripts/line.lua prove", "if name ~= line then", "if false then"}},
		Pkg:   "./rlock", Run: "P30_KeysWithAPrefix",
	},
	{
		Name:  "P30: no client tries what the line takes before it enters",
		Edits: []Edit{{"internal/room Room.turn", `t.Unproven = t.Ticket != "" && !r.facts.Proven`, ""}},
		Pkg:   "./rlock", Run: "P30_",
	},
	{
		Name:  "P30: who proves in vain what it may do has a line last that nobody may leave",
		Edits: []Edit{{"scripts/line.lua prove", "if not refused then", "if true then"}},
		Pkg:   "./rlock", Run: "P30_TheRightIsLostForLong",
	},
	{
		Name:  "P31: who leaves a held lock's line tells nobody",
		Edits: []Edit{{"scripts/leave.lua", "if removed == 1 then", "if false then"}},
		Pkg:   "./scripts", Run: "P31_",
	},
	{
		Name:  "P32: a look does not renew the line",
		Edits: []Edit{{"scripts/line.lua enter", "#last == 0 or added == 0 or", "#last == 0 or"}},
		Pkg:   "./scripts", Run: "P32_",
	},
	{
		Name:  "P32: a newcomer behind ghosts looks late",
		Edits: []Edit{{"internal/line Place.Refused", "return p.watchFromBehind(poll), listening", "return poll, listening"}},
		Pkg:   "./rlock", Run: "P24_WhoIsGone",
	},
	{
		Name:  "P32: a call is lost with its caller",
		Edits: []Edit{{"internal/room Room.keepForNext", "if a.underWay != 0 && (!keeps || old) { r.takeBack(a.underWay) a.claim.doubt = true a.underWay, a.state = 0, resting", "if a.underWay != 0 {\nr.takeBack(a.underWay)\na.claim.doubt = true || old\na.underWay, a.state = 0, watching"}},
		Pkg:   "./internal/room", Run: "TestStories",
	},
	{
		Name:  "P33: there is a line where the server does not count all who listen",
		Edits: []Edit{{"internal/engine Client.hasLine", "return known && (sharded || !c.cluster)", "return known && (sharded || !sharded)"}},
		Pkg:   "./rlock", Run: "P33_",
	},
	{
		Short: "uncounted-in-line",
		Name:  "P33: a client that the server does not count is in the line",
		Edits: []Edit{{"scripts/line.lua prove", "== 0 and not refused then", "== -1 then"}},
		Pkg:   "./rlock", Run: "P33_NobodyIsCounted",
	},
	{
		Name:  "P33: who is not counted takes the lock before those in the line",
		Edits: []Edit{{"scripts/wait.lua wait", "if refused and refused < 30 and", "if refused and"}},
		Pkg:   "./scripts", Run: "P33_WhoIsNotCounted",
	},
	{
		Name:  "P33: a client that was counted is taken for counted by each connection",
		Edits: []Edit{{"internal/engine lockState.onLineMessage", "ls.counted.changes.Add(1)", ""}},
		Pkg:   "./rlock", Run: "P33_AnotherConnection",
	},
	{
		Name:  "P33: a connection that has ended is taken for a server that does not count",
		Edits: []Edit{{"internal/engine Client.lineRefused", "lasts = uncountedOnce", ""}},
		Pkg:   "./rlock", Run: "P33_NotCountedOnce",
	},
	{
		Name:  "P33: who releases where nobody is counted takes the lock again",
		Edits: []Edit{{"internal/engine Client.othersHeard", "return receivers + 2", "return receivers"}},
		Pkg:   "./rlock", Run: "P33_OthersComeFirst",
	},
	{
		Name:  "P34: a line is in another slot than its lock",
		Edits: []Edit{{"scripts lineOf", `return "fencelock_line:{" + name + "}"`, `return "fencelock_line:" + name`}},
		Pkg:   "./scripts", Run: "P34_",
	},
	{
		Name:  "P35: a late copy of a release enters the line",
		Edits: []Edit{{"scripts/release.lua", "remove(lock, field) if", "remove(lock, field) if verdict ~= 1 and (again or '') ~= '' then enter(line, again, '') end if"}},
		Pkg:   "./scripts", Run: "P35_",
	},
	{
		Name:  "P36: a client enters the line behind a hold that does not learn of it",
		Edits: []Edit{{"scripts/acquire.lua confirm", "type(redis.pcall('HINCRBY', lock, holder .. '#', '0')) ~= 'table'", "true"}},
		Pkg:   "./scripts", Run: "P36_",
	},
	{
		Name:  "P36: a hold that took the lock in turn does not look at the line",
		Edits: []Edit{{"internal/engine lockState.registerHold", "!ls.room.Entered()", "true"}},
		Pkg:   "./rlock", Run: "P36_",
	},
	{
		Name:  "P36: a hold that was passed on without an answer does not look at the line",
		Edits: []Edit{{"internal/engine lockState.sendPass", "h.passedOn = true", ""}},
		Pkg:   "./rlock", Run: "P36_AfterAHandoff",
	},
	{
		Name:  "P37: those in no line are never told",
		Edits: []Edit{{"scripts/line.lua forLine", "% (waiting + 1) > 0", "% (waiting + 1) >= 0"}},
		Pkg:   "./scripts", Run: "P37_Strangers",
	},
	{
		Name:  "P37: nobody in the line hears, and nobody else",
		Edits: []Edit{{"scripts/release.lua", "if called == 1 and not refused then", "if true then"}},
		Pkg:   "./scripts", Run: "P37_Nobody",
	},
}
