package main

import "testing"

func TestJudgeCallsEnd(t *testing.T) {
	taken := redisHas(0, "B:9")
	other := history(b.as(9).asks(0, 0), b.as(9).got(0, 1))
	try(t, []twin{
		{"a try", nil, history(a.asks(1, 0), a.refused(2)), later(refused, 0), endsInTime},
		{"a wait", nil, history(other, taken, a.asks(1, 5), a.refused(7)), later(refused, 0), endsInTime},
		{"a wait that has the lock", nil, history(a.asks(1, 0), a.got(2, 1)), later(got, 0), endsInTime},
		{"a call that is not over", nil, history(a.asks(1, 0), until(2)), later(calm, 0), endsInTime},
		{"whatever is broken", nil, history(broken(0, 9, 9), a.asks(1, 0), a.refused(2)), later(refused, 0), endsInTime},
		{"the process has died", nil, history(a.asks(1, 0), a.dies(1.5), until(9)), without(died), endsInTime},
		{"callers stop", nil, history(other, taken, a.asks(1, 60), noMore(5), a.refused(6)), later(refused, 0), endsInTime},
		{"callers stop a wait without an end", nil, history(other, taken, a.asks(1, -1), noMore(5), a.refused(6)), later(refused, 0), endsInTime},
		{"a call after that", nil, history(other, taken, noMore(5), a.asks(6, 9), a.refused(7)), later(refused, 0), endsInTime},
		{"a wait without an end", nil, history(other, taken, a.asks(1, -1), until(90)), changed(asks, 1, func(e *event) { e.For = seconds(87.9) }), endsInTime},
		{"its client is closed", nil, history(other, taken, a.asks(1, 60), a.closes(4, "Close"), a.closed(5), a.refused(4.1)), later(refused, 0), endsInTime},
		{"its client shuts down", nil, history(other, taken, a.asks(1, -1), a.closes(4, "Shutdown"), a.refused(4.1)), later(refused, 0), endsInTime},
		{"its client was closed", nil, history(a.closes(4, "Close"), a.closed(5), a.asks(6, 9), a.refused(6.1)), later(refused, 0), endsInTime},
		{"a try while its client is closed", nil, history(other, taken, a.asks(3.5, 0), a.closes(4, "Close"), a.refused(4.5)), later(refused, 0), endsInTime},
		{"in a hold, its client is closed", nil, history(other, taken, within(a.asks(1, 60)), a.closes(4, "Close"), a.refused(4.1)), later(refused, 0), endsInTime},
		{"in a hold, its client shuts down", nil, history(other, taken, within(a.asks(1, 60)), a.closes(4, "Shutdown"), a.closed(5), a.refused(6)), later(refused, 0), endsInTime},
		{"Redisson's may not", withRedisson, history(r.asks(1, 0), r.refused(9)), nil, endsInTime},
	})
}

// within is an acquire in a hold of another lock.
func within(e event) event { return with(e, func(e *event) { e.Levels = 2 }) }

func TestJudgeUnlockAndCloseEnd(t *testing.T) {
	hold := history(a.asks(1, 1), a.got(1, 1), a.unlocks(2))
	try(t, []twin{
		{"Unlock", nil, history(hold, a.unlocked(8)), later(unlocked, 0), endsInTime},
		{"an Unlock that is not over", nil, history(hold, until(8)), later(calm, 0), endsInTime},
		{"an Unlock of a process that has died", nil, history(hold, a.dies(7), until(9)), without(died), endsInTime},
		{"Redisson's Unlock may not", withRedisson, history(r.asks(1, 1), r.got(1, 1), r.unlocks(2), r.unlocked(9)), nil, endsInTime},
		{"Close", nil, history(a.closes(1, "Close"), a.closed(8)), later(closed, 0), endsInTime},
		{"a Close that is not over", nil, history(a.closes(1, "Close"), until(8)), later(calm, 0), endsInTime},
		{"a Close of a process that has died", nil, history(a.closes(1, "Close"), a.dies(5), until(9)), without(died), endsInTime},
		{"Shutdown", nil, history(a.closes(1, "Shutdown"), a.closed(38)), later(closed, 0), endsInTime},
		{"Close has less time", nil, history(a.closes(1, "Shutdown"), a.closed(38)), says(closes, "Close"), endsInTime},
		{"a second Close is none", nil, history(a.closes(1, "Close"), a.closed(2), a.closes(3, "Close"), until(99)), without(closed), endsInTime},
	})
}

// An episode counts once, however long it lasts, and the next one counts again.
func TestJudgeEpisodesCountOnce(t *testing.T) {
	var each []event
	for at := range 120 {
		each = append(each, until(float64(at)))
	}
	taken := history(b.as(9).asks(200, 1), b.as(9).got(200, 9), redisHas(200, "B:9"), b.dies(210), redisHas(211, ""))
	for _, c := range []struct {
		rule    string
		history []event
		want    int
	}{
		{nobodySleep, history(a.asks(1, 900), each), 1},
		{nobodySleep, history(a.asks(1, 900), each, taken, until(250), until(251)), 2},
		{nobodysLock, history(redisHas(1, "A:1"), each), 1},
		{nobodysLock, history(redisHas(1, "A:1"), each, redisHas(130, ""), redisHas(140, "A:2"), until(150), until(151)), 2},
		{endsInTime, history(a.asks(1, 0), each, a.refused(119)), 1},
		{endsInTime, history(a.closes(1, "Close"), each, a.closed(119)), 1},
		{losesInTime, history(a.asks(1, 1), a.got(1, 1), each, a.unlocks(119), a.unlocked(119)), 1},
		{contextEnds, history(a.asks(1, 1), a.leased(1, 1, 5), each, a.ended(119, "lost")), 1},
		{closeEnds, history(a.asks(1, 1), a.got(1, 1), a.closes(2, "Close"), a.closed(2), each, a.ended(119, "lost")), 1},
		{staysHeld, history(held, a.ended(5, "lost"), with(a.unlocked(5), func(e *event) { e.Text = "lost" })), 1},
	} {
		found := judged(nil, c.history)
		if len(found) != c.want {
			t.Errorf("%d of %s; the judge says: %v", c.want, c.rule, found)
		}
		for _, v := range found {
			if v.Rule != c.rule {
				t.Errorf("%s; the judge says: %v", c.rule, v)
			}
		}
	}
}
