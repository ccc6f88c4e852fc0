package main

import "testing"

// no is the caller's answer, with this error.
func (c caller) no(at float64, why string) event {
	return with(c.refused(at), func(e *event) { e.Text = why })
}

func earlier(kind string, call int) step {
	return changed(kind, call, func(e *event) { e.At -= seconds(moment) })
}

const notGot = "another has it"

func TestJudgeCleanHandoff(t *testing.T) {
	waits := history(a.asks(40, 99), b.holds(39, 41, 1))
	deadLink := called("dead: links", broken(5, 6, 0))
	cut := func(h []event) []event { return says(ends, "cut: links")(says(begins, "cut: links")(h)) }
	waitsAndDies := history(r.asks(37.7, 99), r.dies(37.75), a.asks(37.9, 99), b.holds(37.8, 41, 1), redisHas(38, "B:1"))
	settled := broken(5, 39, 9) // a clean phase begins at 50 s
	try(t, []twin{
		{"it is taken", nil, history(waits, a.got(41.05, 2)), later(got, 1), soonTaken},
		{"it is not taken", nil, history(waits, until(41.05)), later(calm, 0), soonTaken},
		{"who has come a moment before", nil, history(b.holds(39, 41, 1), a.asks(40.901, 99), until(42)), earlier(asks, 1), soonTaken},
		{"after Redisson's release", withRedisson, history(a.asks(40, 99), r.holds(39, 41, 1), until(41.05)), later(calm, 0), soonTaken},
		{"before the clean phase", nil, history(settled, a.asks(49.5, 99), b.holds(49, 49.999, 1), until(51)), later(unlocked, 0), soonTaken},
		{"a fault begins", nil, history(waits, broken(41.05, 60, 0), until(60)), later(begins, 0), soonTaken},
		{"a client has died, and its link before", nil, history(deadLink, waitsAndDies, until(42)), without(died), soonTaken},
		{"a client that wanted another lock has died", nil, history(deadLink, waitsAndDies, until(42)), changed(asks, 3, inL1), soonTaken},
		{"a client has died, and its link with it", nil, history(deadLink, waitsAndDies, until(42)), cut, soonTaken},
		{"its connections may have died", nil, history(deadLink, waits, until(42)), cut, soonTaken},
		{"one that has died costs it once", nil, history(deadLink, waitsAndDies, b.as(4).holds(41.5, 42, 2), a.got(42.05, 3)), later(got, 1), soonTaken},
		{"its client closes", nil, history(waits, a.closes(40.99, "Shutdown"), until(41.06)), without(closes), soonTaken},
		{"the links of its own client were broken", nil, history(brokenOf("c0", 31, 37.001, 2), waits, until(42)), others("c2"), soonTaken},
		{"those of who releases it", nil, history(brokenOf("c1", 31, 37.001, 2), waits, until(42)), others("c2"), soonTaken},
		{"those of who may be in the line still", nil, history(brokenOf("c2", 31, 37.001, 2), r.asks(38.8, 1), r.no(38.9, "gave up"), waits, until(42)), others("c3"), soonTaken},
		{"DoAll may have it", nil, history(waits, allOf(r.asks(40.9, 9)), until(42)), changed(asks, 3, func(e *event) { e.All = false }), soonTaken},
		{"a node counts no votes for long", withQuorum, history(waits, at(called("restart: a server", broken(30, 33, 182)), 1), a.got(41.5, 2)), later(got, 1), soonTaken},
		{"callers stop", nil, history(waits, noMore(41.05), a.no(41.06, "gave up")), later(stops, 0), soonTaken},
		{"Redisson's may", withRedisson, history(r.asks(40, 99), b.holds(39, 41, 1), until(42)), nil, soonTaken},
		{"of a quorum", withQuorum, history(waits, a.got(41.5, 2)), nil, soonTaken},
		{"far away", farAway, history(waits, a.got(41.2, 2)), nil, soonTaken},
		{"far away, late", farAway, history(waits, a.got(41.2, 2)), changed(got, 1, func(e *event) { e.At += seconds(moment) }), soonTaken},
		{"far away, each that was called and gave up has time to pass it on", farAway, history(waits, r.asks(40.5, 0.6), r.no(41.1, notGot), a.got(41.3, 2)),
			without(refused), soonTaken},
		{"of a quorum without the line", withQuorum, history(uncounted(5, 30), b.holds(36, 41, 1), redisHas(36.5, "B:1"), a.asks(37, 99), a.got(42, 2)), countsAll, soonTaken},
		{"of a quorum, late", withQuorum, history(waits, a.got(41.5, 2)), changed(got, 1, func(e *event) { e.At += seconds(moment) }), soonTaken},
	})
}

func TestJudgeCleanAnswers(t *testing.T) {
	other := history(b.asks(38, 0), b.got(38, 1), redisHas(38, "B:1"))
	free := b.holds(39, 40, 1)
	try(t, []twin{
		{"it waits", nil, history(other, a.asks(40, 5), a.no(44.999, notGot)), earlier(refused, 1), waitsLong},
		{"its own context has ended", nil, history(other, a.asks(40, 5), a.no(41, "gave up")), says(refused, "EOF"), noFailures},
		{"over a connection that is dead", nil, history(other, a.asks(40, 0.999), a.no(40.999, "no answer from Redis within the wait")),
			changed(asks, 1, func(e *event) { e.For = seconds(1) }), noFailures},
		{"the hold around it is lost", nil, history(other, a.asks(40, 5), a.no(41, "lost")), says(refused, "EOF"), noFailures},
		{"its lock was unlocked", nil, history(other, a.asks(40, 5), a.no(41, "unlocked")), says(refused, notGot), waitsLong},
		{"before the clean phase", nil, history(other, broken(5, 39, 9), a.asks(49.999, 5), a.no(51, "EOF")), later(asks, 1), noFailures},
		{"its client closes", nil, history(other, a.closes(41, "Close"), a.asks(40, 5), a.no(41, "closed")), without(closes), noFailures},
		{"Redisson's may", withRedisson, history(other, r.asks(40, 5), r.no(41, "EOF")), nil, noFailures},
		{"a lock that was free a moment ago", nil, history(free, a.asks(41, 0), a.no(41.002, notGot)), later(asks, 1), takesFree},
		{"a free lock that another call wants", nil, history(free, b.as(4).asks(41.5, 9), a.asks(41.6, 0), a.no(41.7, notGot)),
			changed(asks, 4, func(e *event) { e.At += seconds(1) }), takesFree},
		{"that comes in between", nil, history(free, b.as(4).asks(41.65, 9), a.asks(41.6, 0), a.no(41.7, notGot)),
			changed(asks, 4, func(e *event) { e.At += seconds(1) }), takesFree},
	})
}

func TestJudgeCleanEnds(t *testing.T) {
	hold := history(a.asks(40, 1), a.got(40, 1), a.unlocks(42))
	try(t, []twin{
		{"Unlock", nil, history(hold, a.unlocked(42.1)), later(unlocked, 0), soonEnds},
		{"Unlock in a quorum", withQuorum, history(hold, a.unlocked(42.5)), nil, soonEnds},
		{"Unlock without an error", nil, history(hold, a.unlocked(42)), says(unlocked, "EOF"), noFailures},
		{"Unlock of a client that closes", nil, history(hold, a.closes(42, "Close"), with(a.unlocked(42.01), func(e *event) { e.Text = "EOF" }), a.closed(42.02)), without(closes), noFailures},
		{"Unlock in a fault", nil, history(broken(5, 30, 10.001), hold, a.unlocked(44)), changed(ends, 0, func(e *event) { e.For -= seconds(moment) }), soonEnds},
		{"Redisson's Unlock may not", withRedisson, history(r.asks(40, 1), r.got(40, 1), r.unlocks(42), r.unlocked(44)), nil, soonEnds},
		{"Close", nil, history(a.closes(40, "Close"), a.closed(40.1)), later(closed, 0), soonEnds},
		{"Shutdown has more time", nil, history(a.closes(40, "Shutdown"), a.closed(42)), says(closes, "Close"), soonEnds},
		{"Close in a fault", nil, history(broken(5, 30, 8.001), a.closes(40, "Close"), a.closed(42)), changed(ends, 0, func(e *event) { e.For -= seconds(moment) }), soonEnds},
	})
}

// allOf is a call of DoAll.
func allOf(e event) event { return with(e, func(e *event) { e.All = true }) }

// Who waits at a hold's end is told by Waited, and nobody else.
func TestJudgeWaited(t *testing.T) {
	hold := history(b.asks(39, 1), b.got(39, 1), redisHas(39, "B:1"), b.does(39, watches))
	says := b.does(42, waited)
	try(t, []twin{
		{"somebody waits", nil, history(hold, a.asks(41, 99), says), changed(asks, 1, func(e *event) { e.For = 0 }), tellsWaited},
		{"somebody has waited", nil, history(hold, a.asks(41, 9), a.no(41.5, "gave up"), says), changed(asks, 1, inL1), tellsWaited},
		{"somebody waited a moment before", nil, history(a.asks(37, 9), a.no(38.001, "gave up"), hold, says), earlier(refused, 1), tellsWaited},
		{"somebody waited before it", nil, history(a.asks(38.5, 99), a.no(40.2, "gave up"), hold, says), changed(asks, 1, inL1), tellsWaited},
		{"somebody waits for another lock", nil, history(hold, a.asks(41, 99), says), changed(asks, 1, inL1), tellsWaited},
		{"of who may be in the line still the links are broken", nil, history(a.asks(35, 9), a.no(36, "gave up"), brokenOf("c0", 35.5, 37.001, 0), hold, says), others("c2"), tellsWaited},
		{"who is gone may be in the line still", nil, history(a.asks(36, 99), a.dies(37), hold, says), changed(asks, 1, inL1), tellsWaited},
		{"it has not said so yet", nil, history(hold, a.asks(41, 99), until(53)), later(calm, 0), tellsWaited},
		{"it has said so", nil, history(hold, a.asks(41, 99), says, until(60)), without(waited), tellsWaited},
		{"it is not to say so", nil, history(hold[:3], a.asks(41, 99), until(60)), more(b.does(39, watches)), tellsWaited},
		{"it is lost", nil, history(hold, a.asks(41, 99), b.ended(53, "gave up"), until(60)), later(ended, 0), tellsWaited},
		{"the links of the holder are broken", nil, history(hold, a.asks(41, 99), brokenOf("c1", 42, 53, 0), until(60)), others("c2"), tellsWaited},
		{"there is no line", nil, history(uncounted(5, 30), hold, a.asks(41, 99), until(60)), countsAll, tellsWaited},
		{"Redisson is in no line", withRedisson, history(hold, r.asks(41, 99), until(60)), nil, tellsWaited},
	})
}

// A lock that DoAll takes is seen when it has all.
func TestJudgeDoAll(t *testing.T) {
	one := history(allOf(a.asks(1, 50)), redisHas(2, "A:1"))
	alone := changed(asks, 0, func(e *event) { e.All = false })
	try(t, []twin{
		{"the lock is nobody's", nil, history(one, until(10)), alone, nobodysLock},
		{"nobody sleeps", nil, history(allOf(a.asks(1, 50)), until(9)), alone, nobodySleep},
		{"what it has is released first", nil, history(b.as(9).asks(0, 0), b.as(9).got(0, 1), redisHas(0, "B:9"), allOf(a.asks(1, 5)), a.no(12, notGot)), later(refused, 1), endsInTime},
		{"its lease began before", nil, history(one, a.leased(4, 1, 9), a.ended(9, "lost")), alone, staysHeld},
		{"the other lock was lost", nil, history(one, a.got(4, 1), gone(5, "L1"), a.ended(9, "lost")), alone, staysHeld},
		{"one was free, and the other was not", nil, history(b.holds(39, 40, 1), allOf(a.asks(41.5, 0)), a.no(41.6, notGot)), alone, takesFree},
	})
}

func TestJudgeOvertakenWaits(t *testing.T) {
	taken := history(r.as(9).asks(38, 0), r.as(9).got(38, 1), redisHas(38, "R:9"), gone(38.5, "L0")) // so that others may have it too
	// each call is asked so long before the last one has the lock
	times := func(n int, c caller, each, before float64) (all []event) {
		for i := range n {
			c, at := c.as(20+i), 41+each*float64(i)
			all = append(all, c.asks(at-before, 30), c.got(at, int64(2+i)), c.unlocks(at), c.unlocked(at+moment/2))
		}
		return all
	}
	waits, most := a.asks(40, 99), overtakenMost
	try(t, []twin{
		{"few", nil, history(taken, waits, times(most, b, 1, 0)), func([]event) []event { return history(taken, waits, times(most+1, b, 1, 0)) }, fewOvertaken},
		{"of its client", nil, history(taken, waits, times(most+1, a, 1, 0)), func([]event) []event { return history(taken, waits, times(most+1, b, 1, 0)) }, fewOvertaken},
		{"as one client passes it on", nil, history(taken, waits, times(most+1, b, 0.002, 0)), func([]event) []event { return history(taken, waits, times(most+1, b, 0.03, 0)) }, fewOvertaken},
		{"that began with it", nil, history(taken, waits, times(most+1, b, 0.1, 0.9+0.1*8)), func([]event) []event { return history(taken, waits, times(most+1, b, 0.1, 0.8)) }, fewOvertaken},
		{"its links were broken", nil, history(brokenOf("c0", 31, 38.001, 0), taken, waits, times(most+1, b, 1, 0)), others("c3"), fewOvertaken},
		{"there is no line", nil, history(uncounted(5, 30), taken, waits, times(most+1, b, 1, 0)), countsAll, fewOvertaken},
		{"all of them read", withPages, reading(history(taken, waits, times(most+1, b, 1, 0))...), changed(asks, 1, func(e *event) { e.Reads = false }), fewOvertaken},
		{"a permit", withPermits, inSlot(second, history(waits, allOf(r.asks(40.5, 99)), times(most, b, 1, 0))...), func([]event) []event {
			return inSlot(second, history(waits, allOf(r.asks(40.5, 99)), times(most+1, b, 1, 0))...)
		}, fewOvertaken},
	})
}
