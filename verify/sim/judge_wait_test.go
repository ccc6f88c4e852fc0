package main

import "testing"

func TestJudgeNobodySleeps(t *testing.T) {
	waits := history(redisHas(1, ""), a.asks(1, 99))
	try(t, []twin{
		{"on a free lock", nil, history(waits, until(3)), later(calm, 0), nobodySleep},
		{"that was taken", nil, history(b.as(9).asks(0, 0), b.as(9).got(0, 1), redisHas(0, "B:9"), a.asks(1, 99), b.as(9).unlocks(5), b.as(9).unlocked(5), redisHas(6, ""), until(8)),
			later(calm, 0), nobodySleep},
		{"that was taken between two looks", nil, history(waits, b.holds(2, 2.5, 1), until(4.5)), later(calm, 0), nobodySleep},
		{"that was taken a moment ago", nil, history(waits, b.asks(2, 1), gone(2, "L0"), b.got(2.5, 1), until(4.5)), later(calm, 0), nobodySleep},
		{"that nobody has taken", nil, history(waits, b.holds(2, 2.5, 1), until(4)),
			func([]event) []event { return history(waits, until(4)) }, nobodySleep},
		{"a fault is there", nil, history(waits, broken(2, 9, 0), until(9)), without(begins), nobodySleep},
		{"a fault was there", nil, history(waits, broken(2, 9, 5), until(16)), later(calm, 0), nobodySleep},
		{"servers begin to count nobody", nil, history(waits, uncounted(2, 9)[:1], until(6)), later(calm, 0), nobodySleep},
		{"the links of its own client are broken", nil, history(waits, brokenOf("c0", 2, 9, 0), until(9)),
			func([]event) []event { return history(waits, brokenOf("c1", 2, 9, 0), until(9)) }, nobodySleep},
		{"the links of two other clients are broken", nil, history(waits, brokenOf("c1", 2, 9, 0), brokenOf("c2", 2, 9, 0), until(9)),
			func([]event) []event {
				return history(waits, brokenOf("c1", 2, 9, 0), brokenOf("c2", 2, 3, 0), until(9))
			}, nobodySleep},
		{"a fault is there, and the links of another client are broken", nil, history(waits, broken(2, 9, 0), brokenOf("c1", 2, 9, 0), until(9)),
			without(begins), nobodySleep},
		{"a wait that began after the fault", nil, history(broken(2, 9, 5), redisHas(13, ""), a.asks(20, 99), until(22)), later(calm, 0), nobodySleep},
		{"the second of two waiters", nil, history(waits, b.asks(1.5, 99), a.dies(2.5), until(3.5)), later(calm, 0), nobodySleep},
		{"the other lock is taken", nil, history(b.of("L1").holds(0, 8, 1), with(redisHas(0.5, "B:1"), inL1), redisHas(1, ""), a.of("L1").asks(1, 99), until(7)),
			func(h []event) []event {
				return history(b.of("L1").holds(0, 8, 1), with(redisHas(0.5, "B:1"), inL1), redisHas(1, ""), a.asks(1, 99), until(7))
			}, nobodySleep},
		{"behind two that are gone", nil, history(waits, b.asks(1.5, 99), r.asks(1.5, 99), b.dies(2), r.dies(2), until(13)), later(calm, 0), nobodySleep},
		{"behind two that were gone before the line was empty", nil, history(b.asks(0.1, 99), r.asks(0.1, 99), b.dies(0.2), r.dies(0.2), b.as(4).holds(0.3, 0.4, 1), waits, until(3)),
			later(calm, 0), nobodySleep},
		{"behind two that are gone since the line was empty", nil, history(b.as(4).holds(0.01, 0.05, 1), b.asks(0.1, 99), r.asks(0.1, 99), b.dies(0.2), r.dies(0.2), waits, until(13)),
			later(calm, 0), nobodySleep},
		{"behind one that is gone", nil, history(waits, b.dies(2), until(2.5)), func([]event) []event { return history(waits, b.dies(2), until(4)) }, nobodySleep},
		{"its client closes", nil, history(redisHas(1, ""), within(a.asks(1, 99)), a.closes(2, "Shutdown"), until(9)), without(closes), nobodySleep},
		{"callers stop", nil, history(waits, noMore(2.5), a.refused(3.5), until(9)), func([]event) []event { return history(waits, until(9)) }, nobodySleep},
		{"Redisson's may", withRedisson, history(redisHas(1, ""), r.asks(1, 99), until(9)), nil, nobodySleep},
	})
}

func TestJudgeNobodysLock(t *testing.T) {
	ghost := redisHas(1, "A:1")
	try(t, []twin{
		{"it has no call", nil, history(ghost, until(3)), later(calm, 0), nobodysLock},
		{"its call is over", nil, history(a.holds(0, 5, 1), ghost, until(7)), later(calm, 0), nobodysLock},
		{"its call was refused", nil, history(a.asks(0, 9), ghost, a.refused(5), until(7)), later(calm, 0), nobodysLock},
		{"its call waits", nil, history(a.asks(0, 99), ghost, until(8)), later(calm, 0), nobodysLock},
		{"a hold that began later has another field", nil, history(ghost, a.holds(0, 5, 1), until(7)),
			func([]event) []event { return history(ghost, a.holds(2, 5, 1), until(7)) }, nobodysLock},
		{"a call that began later has not taken it", nil, history(a.asks(1, 99), ghost, until(8)),
			changed(asks, 0, func(e *event) { e.At += seconds(moment) }), nobodysLock},
		{"a refused one neither", nil, history(ghost, a.asks(1, 9), a.refused(2), until(4)),
			changed(asks, 0, func(e *event) { e.At += seconds(moment) }), nobodysLock},
		{"another field is another hold", nil, history(ghost, redisHas(3, "A:2"), until(5)), func(h []event) []event { return history(ghost, until(5)) }, nobodysLock},
		{"a call of another client", nil, history(ghost, a.holds(0, 9, 1)), func([]event) []event { return history(ghost, b.asks(0, 99), until(3.5)) }, nobodysLock},
		{"a call of another lock", nil, history(ghost, a.holds(0, 9, 1)), func([]event) []event { return history(ghost, a.of("L1").holds(0, 3.5, 1)) }, nobodysLock},
		{"its client has asked nothing since a loss", nil, history(a.asks(0, 0), a.refused(0.1), event{At: seconds(0.5), Kind: lost}, ghost, until(9)),
			without(lost), nobodysLock},
		{"and hears of it by its next call", nil, history(a.asks(0, 0), a.refused(0.1), gone(0.5, ""), ghost, a.of("L1").asks(5, 0), a.of("L1").refused(5.1), until(7)),
			later(calm, 0), nobodysLock},
		{"it has asked at an earlier sign, and asks no more", nil, history(a.holds(0, 2.5, 1), broken(1, 2, 1), gone(3, ""), redisHas(3.5, "A:1"), a.of("L1").as(9).asks(12.6, 0), a.of("L1").as(9).refused(12.7), until(16)),
			changed(asks, 9, func(e *event) { e.At = seconds(12.4) }), nobodysLock},
		{"there was no earlier sign", nil, history(a.holds(0, 2.5, 1), broken(1, 2, 1), gone(3, ""), redisHas(3.5, "A:1"), a.of("L1").as(9).asks(12.6, 0), a.of("L1").as(9).refused(12.7), until(16)),
			changed(ends, 0, func(e *event) { e.For = seconds(0.4) }), nobodysLock},
		{"a fault is there", nil, history(ghost, broken(2, 9, 0), until(9)), without(begins), nobodysLock},
		{"a fault was there", nil, history(ghost, broken(2, 9, 5), until(16)), later(calm, 0), nobodysLock},
		{"its client has died", nil, history(ghost, a.dies(2), until(184)), later(calm, 0), nobodysLock},
		{"what its client has sent arrives late", nil, history(broken(1, 200, 0), a.dies(2), redisHas(200, "A:1"), until(382)), later(calm, 0), nobodysLock},
		{"its client is closed", nil, history(ghost, a.closes(2, "Close"), a.closed(3), until(5)), later(calm, 0), nobodysLock},
		{"its client had it as it closed", nil, history(a.holds(0, 2.5, 1), ghost, a.closes(2, "Close"), a.closed(3), until(185)), later(calm, 0), nobodysLock},
		{"its client got it as it closed", nil, history(within(a.asks(0, 9)), ghost, a.closes(2, "Shutdown"), a.got(2.5, 1), a.unlocks(2.6), a.unlocked(2.6), a.closed(3), until(185)),
			later(calm, 0), nobodysLock},
		{"its client closed beside a fault that was over in time", nil, history(ghost, broken(1.5, 6.9, 0.1), a.closes(2, "Close"), a.closed(3), until(9)), later(calm, 0), nobodysLock},
		{"its client closed beside a fault", nil, history(ghost, broken(1.5, 7.001, 0), a.closes(2, "Close"), a.closed(3), until(185)), later(calm, 0), nobodysLock},
		{"a fault began as it closed", nil, history(ghost, a.closes(2, "Close"), broken(2.5, 9, 0), a.closed(3), until(185)), later(calm, 0), nobodysLock},
		{"its client closes", nil, history(ghost, a.closes(2, "Close"), until(9)), without(closes), nobodysLock},
		{"callers stop", nil, history(ghost, noMore(2), until(9)), without(stops), nobodysLock},
		{"Redisson's", withRedisson, history(redisHas(1, "R:1"), until(9)), nil, nobodysLock},
		{"no client's", nil, history(ghost, until(2)), says(has, "Z:1"), nobodysLock},
	})
}

func TestJudgeNothingIsLeft(t *testing.T) {
	try(t, []twin{
		{"a key", nil, nil, more(leaves(9, "", "the key x")), nothingLeft},
		{"a lock", nil, nil, more(leaves(9, "L0", "A:1")), nothingLeft},
		{"of a process that has died", nil, history(a.dies(1), leaves(180.999, "L0", "A:1")), later(left, 0), nothingLeft},
		{"of a client that is closed", nil, history(a.closes(1, "Close"), a.closed(2), leaves(181.999, "L0", "A:1")), later(left, 0), nothingLeft},
		{"of Redisson's", withRedisson, history(leaves(9, "L0", "R:1")), nil, nothingLeft},
		{"of nobody", withRedisson, history(leaves(9, "L0", "R:1")), says(left, "Z:1"), nothingLeft},
	})
}
