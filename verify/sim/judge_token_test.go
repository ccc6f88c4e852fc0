package main

import "testing"

func TestJudgeTokens(t *testing.T) {
	one, two := a.holds(1, 2, 5), b.holds(3, 4, 6)
	flushed := history(one, gone(2.5, ""), b.holds(3, 4, 1))
	try(t, []twin{
		{"they grow", nil, history(one, two), token(2, 5), tokensGrow},
		{"calls at the same time", nil, history(a.asks(1, 9), b.asks(2, 9), a.got(2, 5), a.unlocks(3), a.unlocked(3), b.got(3, 4), b.unlocks(4), b.unlocked(4)),
			changed(asks, 2, func(e *event) { e.At = seconds(2 + moment) }), tokensGrow},
		{"after calls at the same time", nil,
			history(a.asks(1, 9), b.asks(1, 9), a.got(2, 5), a.unlocks(2), a.unlocked(2), b.got(3, 4), b.unlocks(3), b.unlocked(3), a.as(4).holds(5, 6, 6)),
			token(4, 5), tokensGrow},
		{"a larger one came meanwhile", nil,
			history(one, b.asks(2.5, 9), a.as(4).holds(3, 4, 7), b.got(5, 6), b.unlocks(6), b.unlocked(6)), token(2, 5), tokensGrow},
		{"each lock has its own", nil, history(one, b.of("L1").holds(3, 4, 1)), func([]event) []event { return history(one, b.holds(3, 4, 1)) }, tokensGrow},
		{"Redisson takes part", withRedisson, history(one, r.holds(3, 4, 6)), token(3, 5), tokensGrow},
		{"whatever is broken", nil, history(broken(1, 9, 9), one, two), token(2, 5), tokensGrow},
		{"all data was lost", nil, flushed, without(lost), tokensGrow},
		{"a deleted lock has its counter", nil, flushed, changed(lost, 0, func(e *event) { e.Lock = "L0" }), tokensGrow},
		{"a clock that is set leaves the counter", nil, flushed, says(lost, "time: 5s"), tokensGrow},
		{"the loss was in its time", nil, history(gone(1, ""), one, b.holds(3, 4, 1)),
			changed(lost, 0, func(e *event) { e.At = seconds(1 - moment) }), tokensGrow},
		{"a world without them", func(p *plan) { p.Plain = true }, history(a.holds(1, 2, 0), b.holds(3, 4, 0)), nil, tokensGrow},
		{"they begin anew once", nil, history(flushed, a.as(4).holds(5, 6, 2)), token(4, 1), tokensGrow},
	})
}

func TestJudgeTokensOfLevels(t *testing.T) {
	levels := history(a.asks(1, 1), a.got(1, 5), a.nests(2, 6), a.nests(3, 7), a.unlocks(4), a.unlocked(4))
	stable := history(a.asks(1, 1), a.got(1, 5), a.nests(2, 5), a.unlocks(4), a.unlocked(4))
	nests := func(at float64, n int64) step {
		return changed(nested, 0, func(e *event) {
			if e.At == seconds(at) {
				e.Token = n
			}
		})
	}
	try(t, []twin{
		{"a re-entry has a new one", nil, levels, nests(2, 5), tokensGrow},
		{"and so has the next", nil, levels, nests(3, 6), tokensGrow},
		{"and the next hold", nil, history(levels, b.holds(5, 6, 8)), token(2, 7), tokensGrow},
		{"a stable one stays", withStable, stable, nests(2, 6), tokensGrow},
		{"a stable one is an option", withStable, stable, nil, tokensGrow},
		{"Redisson has none that is stable", func(p *plan) { withStable(p); withRedisson(p) },
			history(r.asks(1, 1), r.got(1, 5), r.nests(2, 6)), nests(2, 5), tokensGrow},
		{"all data was lost", nil, history(a.asks(1, 1), a.got(1, 5), gone(1.5, ""), a.nests(2, 1)), without(lost), tokensGrow},
	})
}

func TestJudgeTokensWithOptions(t *testing.T) {
	one := a.holds(1, 2, 5)
	try(t, []twin{
		{"a floor outlives the data", withFloor, history(one, gone(2.5, ""), b.holds(3, 4, 6)), token(2, 5), tokensGrow},
		{"a floor needs its clock", withFloor, history(clockSet(1), one, gone(2.5, ""), b.holds(3, 4, 1)),
			func(h []event) []event { return h[1:] }, tokensGrow},
		{"a floor needs no clock while the counter is there", withFloor, history(clockSet(1.5), one, b.holds(3, 4, 6)), token(2, 5), tokensGrow},
		{"Redisson has no floor", func(p *plan) { withFloor(p); withRedisson(p) }, history(one, gone(2.5, ""), r.holds(3, 4, 1)),
			func(h []event) []event { return history(one, gone(2.5, ""), b.holds(3, 4, 1)) }, tokensGrow},
		{"nodes that have started anew have their clocks", withQuorum, history(one, with(gone(2.5, ""), restarted), b.holds(3, 4, 6)), token(2, 5), tokensGrow},
		{"if these are right", withQuorum, history(clockSet(1), one, with(gone(2.5, ""), restarted), b.holds(3, 4, 1)),
			func(h []event) []event { return h[1:] }, tokensGrow},
		{"nodes that have lost their data", withQuorum, history(one, gone(2.5, ""), b.holds(3, 4, 1)), says(lost, restarts), tokensGrow},
		{"nor has who comes after it", func(p *plan) { withFloor(p); withRedisson(p) }, history(r.holds(1, 2, 5), gone(2.5, ""), b.holds(3, 4, 1)),
			func(h []event) []event { return history(one, gone(2.5, ""), b.holds(3, 4, 1)) }, tokensGrow},
	})
}
