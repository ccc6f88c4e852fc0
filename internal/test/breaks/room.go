package breaks

// What a client's waiting for one lock decides. The searches of internal/room find these by their fixed walks. Other breaks of that package are with their rules.
var ofRoom = []Break{
	{
		Name:  "Inv8: nobody asks when the client's own hold is over",
		Edits: []Edit{{"internal/room Room.holdEnded", "r.mayBeFree(free)", "r.mayBeFree(false)"}},
		Pkg:   "./internal/room", Run: "TestRandom",
	},
	{
		Name:  "Inv8: a client that is in no line takes itself for called by its own release",
		Edits: []Edit{{"internal/room Room.holdEnded", "!called || !r.inLine()", "!called"}},
		Pkg:   "./internal/room", Run: "TestRandom",
	},
	{
		Name: "P35: a client takes itself for entered by a release that has no answer",
		Edits: []Edit{
			{"internal/room Room.released", "r.others.place.EnteredByRelease(ev.Ticket, ev.Score)", "r.others.place.EnteredByRelease(ev.Ticket, max(ev.Score, 1))"},
			{"internal/room Room.released", "if ev.Err != nil || !ev.Got {", "if ev.Err == nil && !ev.Got {"},
		},
		Pkg: "./internal/room", Run: "TestRandom",
	},
	{
		Name:  "Inv8: what is heard during an attempt is forgotten at its answer",
		Edits: []Edit{{"internal/room Room.judge", "handed, c :=", "r.asker.freed = false\nif r.others.place != nil && r.asker.state == asking {\nr.others.place.Heed(r.now, 0)\n}\nhanded, c :="}},
		Pkg:   "./internal/room", Run: "TestRandom",
	},
	{
		Name:  "the newest call of a client comes before those that wait behind the first",
		Edits: []Edit{{"internal/room Room.join", "r.asker.queue = append(r.asker.queue, *c)", "r.asker.queue = slices.Insert(r.asker.queue, min(1, len(r.asker.queue)), *c)"}},
		Pkg:   "./internal/room", Run: "TestRandom",
	},
	{
		Name:  "P3: what a call has asked for that has left is not released",
		Edits: []Edit{{"internal/room Room.keepForNext", "got != field", "got != field && was != asking"}},
		Pkg:   "./internal/room", Run: "TestRandom",
	},
	{
		Name:  "P15: an Unlock that waits for its pass no longer releases nothing",
		Edits: []Edit{{"internal/room Room.gaveUpPass", "r.passOver(Release, true)", "r.others.pass = pass{}"}},
		Pkg:   "./internal/room", Run: "TestRandom",
	},
	{
		Name:  "P22: a client whose channel was away enters the line at the end",
		Edits: []Edit{{"internal/room Room.changed", "r.others.place.ChannelLost()", ""}},
		Pkg:   "./internal/room", Run: "TestRandom",
	},
	{
		Name:  "the answer to an attempt that was taken back is taken for that to the latest",
		Edits: []Edit{{"internal/room Room.answered", "ev.Attempt != 0 && ev.Attempt == r.asker.underWay", "ev.Attempt != 0 && r.asker.underWay != 0"}},
		Pkg:   "./internal/room", Run: "TestRandom",
	},
	{
		Name:  "P56: a local pass gives a call a hold on other terms",
		Edits: []Edit{{"internal/room Room.passesLocally", "ev.Call.Terms != head.Terms", "false"}},
		Pkg:   "./internal/room", Run: "TestRandom",
	},
	{
		Name:  "P56, Inv2: a hold is passed on locally without a token",
		Edits: []Edit{{"internal/room Room.passesLocally", "ev.Tokens == 0", "false"}},
		Pkg:   "./internal/room", Run: "TestRandom",
	},
	{
		Name:  "P56: a run of local passes has no end",
		Edits: []Edit{{"internal/room run.next", "r.passes >= most", "false"}},
		Pkg:   "./internal/room", Run: "TestRandom",
	},
	{
		Name:  "P56, Inv9: a hold that was passed on locally to a call that ends is not released",
		Edits: []Edit{{"internal/room Room.keepForNext", "r.abandon(passed, false)", ""}},
		Pkg:   "./internal/room", Run: "TestRandom",
	},
	{
		Name:  "P56, Inv1: a lease that Redis has not confirmed is passed on",
		Edits: []Edit{{"internal/engine hold.offers", "promised.After(h.Lease.Deadline()) ||", "false && promised.After(h.Lease.Deadline()) ||"}},
		Pkg:   "./rlock", Run: "P56_ALeaseWithoutAnAnswer",
	},
	{
		Name:  "P56: the hold count of the holder before is passed on",
		Edits: []Edit{{"internal/engine hold.offers", "|| !h.changes.isOne()", ""}},
		Pkg:   "./rlock", Run: "P56_AHoldCount",
	},
	{
		Name:  "P56, Inv2: tokens that are times run ahead of the clock",
		Edits: []Edit{{"internal/engine Lock.reserves", "min(n, mostOnFloor) + 1", "n + 1"}},
		Pkg:   "./rlock", Run: "P56_FewTokens",
	},
	{
		Name:  "P56, P9: the attempts of a hold ask for different numbers of tokens",
		Edits: []Edit{{"internal/engine waiter.counts", "s.tokens == 0", "true"}},
		Pkg:   "./rlock", Run: "P56_",
	},
}
