package main

import "testing"

func withPages(p *plan)   { p.Kinds = []kind{pages} }
func withPermits(p *plan) { p.Kinds = []kind{2} }

// reading is what is asked for to read.
func reading(h ...event) []event {
	return changed(asks, 0, func(e *event) { e.Reads = true })(h)
}

// inSlot is what is got by a permit.
func inSlot(slot string, h ...event) []event {
	return changed(got, 0, func(e *event) { e.Slot = slot })(h)
}

func hasSlot(at float64, slot, field string) event {
	return with(redisHas(at, field), func(e *event) { e.Lock = slot })
}

const first, second = "{L0}:0", "{L0}:1"

func TestJudgeReadWrite(t *testing.T) {
	readers := history(reading(a.holds(1, 9, 5)...), reading(b.holds(2, 8, 6)...))
	oneReads := history(reading(b.asks(0, 9)), b.got(0.5, 1), redisHas(1, "B:1"))
	writes := changed(asks, 2, func(e *event) { e.Reads = false })
	two := history(reading(a.asks(0, 9), b.asks(0, 9)), a.got(0.1, 1), b.got(0.1, 1), redisHas(1, "A:1 B:1"), b.unlocks(2), b.unlocked(2))
	try(t, []twin{
		{"several read", withPages, readers, writes, oneHolder},
		{"who reads where one writes", withPages, history(a.holds(1, 2, 5), reading(b.holds(3, 4, 6)...)), func([]event) []event {
			return history(a.holds(1, 3.5, 5), reading(b.holds(3, 4, 6)...))
		}, oneHolder},
		{"a phase has one token", withPages, history(reading(a.holds(1, 9, 5)...), reading(b.holds(2, 8, 5)...)), token(2, 4), tokensGrow},
		{"who writes has a new one", withPages, history(reading(a.holds(1, 2, 5)...), b.holds(3, 4, 6)), token(2, 5), tokensGrow},
		{"a level has that of its hold", withPages, history(a.asks(1, 1), a.got(1, 5), a.nests(2, 5)), changed(nested, 0, func(e *event) { e.Token = 6 }), tokensGrow},
		{"who reads comes to who reads", withPages, history(oneReads, reading(a.asks(2, 99)), until(14)), later(calm, 0), nobodySleep},
		{"but not before who waits to write", withPages, history(oneReads, r.asks(2, 99), reading(a.asks(2, 99)), until(15)), func([]event) []event {
			return history(oneReads, reading(a.asks(2, 99)), until(15))
		}, nobodySleep},
		{"one of two has unlocked", withPages, history(two, until(4)), later(calm, 0), nobodysLock},
		{"a forgotten release stays forgotten", withPages, history(two, gone(3, ""), until(9)), without(lost), nobodysLock},
		{"a context of who reads", withPages, history(two[:5], a.unlocks(2), a.unlocked(2), redisHas(3, "B:1")), says(has, "A:1"), contextEnds},
	})
}

func TestJudgePermits(t *testing.T) {
	both := history(inSlot(first, a.holds(1, 9, 5)...), inSlot(second, b.holds(2, 8, 6)...))
	full := history(inSlot(first, b.asks(38, 1), b.got(38, 1)), inSlot(second, r.asks(38, 1), r.got(38, 2)), hasSlot(38.1, first, "B:1"), hasSlot(38.1, second, "R:1"))
	slot := func(slot string) step { return changed(got, 2, func(e *event) { e.Slot = slot }) }
	try(t, []twin{
		{"each has a slot", withPermits, both, slot(first), oneHolder},
		{"there are no more", withPermits, both, slot("{L0}:2"), oneHolder},
		{"each slot has its tokens", withPermits, history(inSlot(first, a.holds(1, 2, 5)...), inSlot(second, b.holds(3, 4, 1)...)), slot(first), tokensGrow},
		{"all are taken", withPermits, history(full, a.asks(40, 99), until(55)), func(h []event) []event { return history(h[:5], a.asks(40, 99), until(42.001)) }, nobodySleep},
		{"a permit is unlocked", withPermits, history(full, a.asks(40, 99), b.unlocks(41), b.unlocked(41), inSlot(first, a.got(41.05, 3))), later(got, 1), soonTaken},
		{"the slot of nobody", withPermits, history(inSlot(first, a.holds(0, 2, 1)...), hasSlot(1, first, "A:1"), until(4)), later(calm, 0), nobodysLock},
		{"a context", withPermits, history(inSlot(first, a.asks(1, 1), a.got(1, 1)), hasSlot(2, first, "A:1"), a.ended(9, "gave up"), hasSlot(9, first, "")),
			later(ended, 0), contextEnds},
		{"its key was lost", withPermits, history(inSlot(first, a.holds(1, 9, 1)...), gone(3, "L0"), inSlot(first, b.holds(4, 5, 2)...)), without(lost), oneHolder},
	})
}

func TestJudgeExtend(t *testing.T) {
	extend := func(at, d float64) []event {
		return history(with(a.does(at, extends), func(e *event) { e.For = seconds(d) }), a.does(at, extended))
	}
	shorter := changed(remains, 0, func(e *event) { e.For -= seconds(moment) })
	lasts := with(a.does(12, remains), func(e *event) { e.For = seconds(48.78) })
	try(t, []twin{
		{"it lasts", nil, history(held, extend(2, 60), lasts), shorter, extendKept},
		{"the longer one counts", nil, history(held, extend(2, 60), extend(3, 5), lasts), shorter, extendKept},
		{"its key was lost", nil, shorter(history(held, extend(2, 60), gone(4, "L0"), lasts)), without(lost), extendKept},
		{"one that has failed", nil, says(extended, "EOF")(shorter(history(held, broken(1, 20, 0), extend(2, 60), lasts))), says(extended, ""), extendKept},
		{"whatever is broken", nil, history(held, extend(2, 50), broken(2.5, 90, 0), a.ended(50, "lost")), earlier(ended, 1), extendKept},
		{"a lease of its own", nil, history(a.asks(1, 9), redisHas(1, "A:1"), a.leased(2, 1, 5), extend(3, 20), a.ended(23, "lost"), until(25)), later(ended, 0), contextEnds},
		{"and its loss", nil, history(held, gone(4, "L0"), extend(3, 60), redisHas(5, ""), a.ended(66, "lost")), later(ended, 0), losesInTime},
	})
}

func TestJudgeFailures(t *testing.T) {
	level := with(a.does(40, failed), func(e *event) { e.Text = "lost" })
	holding := history(a.asks(38, 1), a.got(38, 1))
	try(t, []twin{
		{"a level", nil, history(holding, level), says(failed, "EOF"), noFailures},
		{"a level, in a fault", nil, says(failed, "EOF")(history(broken(5, 30, 8.001), holding, level)),
			changed(ends, 0, func(e *event) { e.For -= seconds(moment) }), noFailures},
		{"an Extend", nil, history(holding, a.does(40, extends), a.does(40, extended)), says(extended, "EOF"), noFailures},
		{"of a client that closes", nil, history(holding, a.closes(39, "Shutdown"), with(level, func(e *event) { e.Text = "closed" })), without(closes), noFailures},
	})
}
