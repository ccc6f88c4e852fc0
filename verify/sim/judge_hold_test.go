package main

import "testing"

func TestJudgeOneHolder(t *testing.T) {
	try(t, []twin{
		{"the context has ended", nil,
			history(a.asks(1, 1), a.got(1, 1), a.ended(4, "gave up"), b.holds(5, 6, 2), a.unlocks(7), a.unlocked(7)), without(ended), oneHolder},
		{"it was unlocked", nil, history(a.holds(1, 4, 1), b.holds(4, 5, 2)),
			func([]event) []event { return history(a.holds(1, 4.5, 1), b.holds(4, 5, 2)) }, oneHolder},
		{"another lock", nil, history(a.holds(1, 9, 1), b.of("L1").holds(2, 3, 1)),
			func(h []event) []event { return history(a.holds(1, 9, 1), b.holds(2, 3, 2)) }, oneHolder},
		{"the process has died", nil, history(a.asks(1, 1), a.got(1, 1), a.dies(3), b.holds(20, 21, 2)), without(died), oneHolder},
		{"a key was lost", nil, history(a.holds(1, 9, 1), gone(3, "L0"), b.holds(4, 5, 2)), without(lost), oneHolder},
		{"all data was lost", nil, history(a.holds(1, 9, 1), gone(3, ""), b.holds(4, 5, 2)), without(lost), oneHolder},
		{"the key of this lock was lost", nil, history(a.holds(1, 9, 1), gone(3, "L0"), b.holds(4, 5, 2)),
			changed(lost, 0, inL1), oneHolder},
		{"a node of a quorum has forgotten", withQuorum, history(a.holds(1, 9, 1), gone(3, ""), b.holds(4, 5, 2)), says(lost, restarts), oneHolder},
		{"the server has restarted", nil, history(a.holds(1, 9, 1), with(gone(3, ""), restarted), b.holds(4, 5, 2)), without(lost), oneHolder},
		{"the loss was in its time", nil, history(a.holds(1, 9, 1), gone(1, "L0"), b.holds(4, 5, 2)),
			changed(lost, 0, func(e *event) { e.At = seconds(1 - moment) }), oneHolder},
		{"the loss was a lease ago", nil,
			history(a.asks(1, 1), a.got(1, 1), redisHas(2, "A:1"), gone(3, "L0"), b.asks(33, 1), b.got(34, 2), a.ended(34.1, "lost")),
			later(got, 2), oneHolder},
		{"the loss was a lease of its own ago", nil,
			history(a.asks(1, 9), gone(2, "L0"), redisHas(3, "A:1"), a.leased(4, 1, 5), b.asks(8, 1), b.got(8, 2), a.ended(9, "lost")),
			later(got, 2), oneHolder},
		{"the answer was late, and the loss before it", nil, history(broken(0, 3, 9), b.asks(1, 9), gone(2, "L0"), a.holds(3, 9, 1), b.got(4, 2)),
			func([]event) []event {
				return history(broken(0, 3, 0), gone(2, "L0"), a.holds(3, 9, 1), b.asks(3, 9), b.got(4, 2))
			}, oneHolder},
		{"Redisson gets it", withRedisson, history(a.asks(1, 1), a.got(1, 1), a.ended(4, "gave up"), r.holds(5, 6, 2), a.unlocks(7), a.unlocked(7)),
			without(ended), oneHolder},
		{"Redisson had it", withRedisson, history(r.holds(1, 9, 1), a.holds(3, 4, 2)), nil, oneHolder},
	})
}

func TestJudgeContextsEnd(t *testing.T) {
	try(t, []twin{
		{"before Redis has nobody", nil, history(held, a.ended(9, "gave up"), redisHas(9, "")), later(ended, 0), contextEnds},
		{"before Redis has another", nil, history(held, a.unlocks(9), a.unlocked(9), redisHas(9, "A:2"), b.asks(9, 99)), func([]event) []event {
			return history(held, redisHas(9, "A:2"), a.unlocks(9.001), a.unlocked(9.001))
		}, contextEnds},
		{"soon where Redis has not had it at all", nil, history(redisHas(0.5, ""), a.asks(1, 1), a.got(1, 1), a.ended(2, "gave up")), later(ended, 0), contextEnds},
		{"before Redis has nobody, whatever is broken", nil, history(held, broken(4, 60, 9), a.ended(9, "gave up"), redisHas(9, "")), later(ended, 0), contextEnds},
		{"with the lease", nil, history(a.asks(1, 9), redisHas(1, "A:1"), a.leased(2, 1, 5), a.ended(7, "lost"), until(9)), later(ended, 0), contextEnds},
		{"the lease of a re-entry is longer", nil,
			history(a.asks(1, 9), redisHas(1, "A:1"), a.leased(2, 1, 5), a.nests(3, 2), until(9)), without(nested), contextEnds},
		{"whatever is broken", nil,
			history(broken(1, 60, 9), a.asks(1, 9), redisHas(1, "A:1"), a.leased(2, 1, 5), a.ended(7, "lost"), until(9)), later(ended, 0), contextEnds},
		{"the process has died", nil, history(a.asks(1, 9), a.leased(2, 1, 5), a.dies(6), until(9)), without(died), contextEnds},
		{"Redisson's has no end", withRedisson, history(r.asks(1, 9), redisHas(1, "R:1"), r.leased(2, 1, 5), until(9)), nil, contextEnds},
	})
}

// held is a hold of A's from second 1, which the servers have seen.
var held = history(a.asks(1, 1), a.got(1, 1), redisHas(2, "A:1"))

func TestJudgeLostHoldsEnd(t *testing.T) {
	try(t, []twin{
		{"another client has it", nil, history(held, gone(4, "L0"), b.asks(4, 1), b.got(4.5, 2), redisHas(5, "B:1"), a.ended(36, "lost")), later(ended, 0), losesInTime},
		{"nobody has it", nil, history(held, gone(4, "L0"), redisHas(5, ""), a.ended(36, "lost")), later(ended, 0), losesInTime},
		{"another call of its client has it", nil, history(held, gone(4, "L0"), redisHas(5, "A:2"), a.ended(36, "lost")), later(ended, 0), losesInTime},
		{"the servers have it again", nil, history(held, gone(4, "L0"), redisHas(5, ""), redisHas(6, "A:1"), until(90)),
			func(h []event) []event { return history(held, gone(4, "L0"), redisHas(5, ""), until(90)) }, losesInTime},
		{"it was never there", nil, history(a.asks(1, 1), a.got(1, 1), gone(1.5, "L0"), a.ended(32, "gave up")), later(ended, 0), losesInTime},
		{"its longer lease", nil,
			history(a.asks(1, 1), a.leased(1, 1, 50), a.nests(2, 2), redisHas(2, "A:1"), gone(4, "L0"), redisHas(5, ""), a.ended(56, "lost")),
			later(ended, 0), losesInTime},
		{"the lease of its re-entry", nil,
			history(a.asks(1, 1), a.leased(1, 1, 5), a.nests(2, 2), redisHas(2, "A:1"), gone(4, "L0"), redisHas(5, ""), a.ended(36, "lost")),
			later(ended, 0), losesInTime},
		{"the servers had another first", nil, history(a.asks(1, 1), a.got(1, 1), gone(1.5, "L0"), redisHas(2, "B:1"), redisHas(3, "A:1"), until(90), a.ended(90, "gave up")),
			func([]event) []event {
				return history(held, gone(2.5, "L0"), redisHas(3, "A:2"), a.ended(90, "gave up"))
			}, losesInTime},
		{"others come and go", nil, history(held, gone(4, "L0"), redisHas(5, ""), b.holds(20, 20.5, 2), a.ended(36, "lost")), later(ended, 0), losesInTime},
		{"it is unlocked", nil, history(held, gone(4, "L0"), redisHas(5, ""), a.unlocks(36), a.unlocked(36.1)), later(unlocks, 0), losesInTime},
		{"the process has died", nil, history(held, gone(4, "L0"), redisHas(5, ""), a.dies(9), until(90)), without(died), losesInTime},
		{"a fault of one server is no excuse", nil, history(held, gone(4, "L0"), broken(4, 80, 9), redisHas(5, ""), a.ended(36, "lost")), later(ended, 0), losesInTime},
		{"nor is one that is over", nil, history(held, gone(4, "L0"), broken(4, 9, 20), redisHas(5, ""), a.ended(36, "lost")), later(ended, 0), losesInTime},
		{"a fault of several is one", withQuorum, history(held, gone(4, "L0"), broken(4, 40, 9), redisHas(5, ""), until(80), a.ended(80, "gave up")), later(ended, 0), losesInTime},
		{"Redisson loses without a word", withRedisson, history(r.asks(1, 1), r.got(1, 1), until(90)), nil, losesInTime},
		{"another lock is free", nil, history(held, gone(4, "L0"), with(redisHas(5, ""), inL1), until(90)), more(redisHas(5, "")), losesInTime},
	})
}

func TestJudgeHoldsStay(t *testing.T) {
	try(t, []twin{
		{"while they are renewed", nil, history(held, a.ended(9, "gave up")), says(ended, "lost"), staysHeld},
		{"other calls fail", nil, history(held, a.ended(9, "gave up")), says(ended, "unlocked"), staysHeld},
		{"until they are unlocked", nil, history(a.holds(1, 9, 1)), says(unlocked, "lost"), staysHeld},
		{"a fault is there", nil, history(held, broken(15, 40, 0), a.ended(32, "lost")), without(begins), staysHeld},
		{"a fault was there", nil, history(held, broken(4, 20, 7), a.ended(31.999, "lost")), later(ended, 0), staysHeld},
		{"there was no time for a renewal", nil, history(held, broken(1.5, 40, 0), a.ended(21.001, "lost")),
			changed(ended, 0, func(e *event) { e.At -= seconds(2 * moment) }), staysHeld},
		{"its lease is short, and so is the time for a renewal", withShortLease, history(held, broken(2, 9, 0), a.ended(9.999, "lost")), later(ended, 0), staysHeld},
		{"no fault ends a lease that nobody renews", nil, history(broken(3, 60, 0), a.asks(1, 1), a.leased(1, 1, 50), redisHas(2, "A:1"), a.ended(49, "lost")),
			changed(ended, 0, func(e *event) { e.At -= seconds(moment) }), staysHeld},
		{"what has ended its context is told by its Unlock too", nil, history(held, broken(4, 26, 0), a.ended(30, "lost"), a.unlocks(90), with(a.unlocked(90), func(e *event) { e.Text = "lost" })),
			without(ended), staysHeld},
		{"its key was lost", nil, history(held, gone(4, "L0"), a.ended(8, "lost")), changed(lost, 0, inL1), staysHeld},
		{"its lease is over", nil, history(a.asks(1, 1), a.leased(1, 1, 5), a.ended(4.9, "lost")),
			changed(ended, 0, func(e *event) { e.At = seconds(4.9 - moment) }), staysHeld},
		{"its lease is over, and the answer was late", nil, history(broken(0, 2, 0), a.asks(1, 5), a.leased(4, 1, 50), a.ended(51, "lost")),
			func([]event) []event {
				return history(broken(0, 2, 0), a.asks(2, 5), a.leased(4, 1, 50), a.ended(51, "lost"))
			}, staysHeld},
		{"Redisson loses it", withRedisson, history(r.asks(1, 1), r.got(1, 1), r.ended(9, "lost")), nil, staysHeld},
	})
}

func TestJudgeCloseEndsHolds(t *testing.T) {
	try(t, []twin{
		{"a context", nil, history(held, a.closes(3, "Close"), a.closed(4), a.ended(5, "closed"), until(8)), later(ended, 0), closeEnds},
		{"a new hold", nil, history(within(a.asks(1, 9)), a.closes(3, "Shutdown"), a.closed(4), a.got(4, 1), a.unlocks(5), a.unlocked(5)),
			changed(got, 0, func(e *event) { e.At = seconds(4.5) }), closeEnds},
		{"a new hold of Redisson's", withRedisson, history(within(r.asks(1, 9)), r.closes(3, "Shutdown"), r.closed(4), r.got(4.5, 1)), nil, closeEnds},
		{"Redisson's", withRedisson, history(r.asks(1, 1), r.got(1, 1), r.closes(3, "Close"), r.closed(4), until(9)), nil, closeEnds},
	})
}

func TestJudgeCounts(t *testing.T) {
	reentered := history(a.asks(1, 1), a.got(1, 1), a.nests(2, 2), a.counts(3, 2))
	miscounted := changed(counted, 0, func(e *event) { e.Count = 3 })
	try(t, []twin{
		{"its levels", nil, reentered, miscounted, countsOnce},
		{"whatever is broken", nil, history(reentered, broken(1, 9, 9)), miscounted, countsOnce},
		{"its key was lost", nil, miscounted(history(reentered, gone(2, "L0"))), without(lost), countsOnce},
		{"the loss was in its time", nil, miscounted(history(reentered, gone(1, "L0"))),
			changed(lost, 0, func(e *event) { e.At = seconds(1 - moment) }), countsOnce},
		{"the key of this lock", nil, miscounted(history(reentered, gone(2, "L0"))), changed(lost, 0, inL1), countsOnce},
	})
}
