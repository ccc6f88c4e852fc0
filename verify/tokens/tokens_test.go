package tokens

import (
	"flag"
	"testing"
	"time"
)

var all = flag.Bool("all", false, "run also the larger searches")

const (
	limit      = 8_000_000  // of the states of a search
	largeLimit = 20_000_000 // of those with -all
)

// slots are for the searches that run at the same time: two of the largest take less than 1 GB.
var slots = make(chan struct{}, 2)

// row is one search.
type row struct {
	name  string
	model Model
	large bool // only with -all
}

// holds are the searches that must go through all states and find nothing.
var holds = []row{
	{name: "restart", model: Model{Bounds: Bounds{Restarts: 1, Delay: 2, Ahead: 1}}},
	{name: "restart, longer time", model: Model{Bounds: Bounds{Restarts: 1, Delay: 2, Ahead: 1, Longer: 1}}},
	{name: "two restarts", model: Model{Bounds: Bounds{Restarts: 2, Delay: 2, Ahead: 1}}},
	{name: "two restarts of a used lock", model: Model{Bounds: Bounds{Used: true, Restarts: 2, Delay: 2, Ahead: 1}}},
	{name: "restart, late commands", model: Model{Bounds: Bounds{Restarts: 1, Delay: 2, Ahead: 1, Late: true}}},
	{name: "restart, two proposals", model: Model{Bounds: Bounds{Restarts: 1, Delay: 2, Ahead: 1, Proposals: 2}}},
	{name: "restart, a third attempt", large: true, model: Model{Bounds: Bounds{Used: true, Restarts: 1, Delay: 2, Ahead: 1, Others: 1}}},
	{name: "restart, a round of a tick", large: true, model: Model{Bounds: Bounds{Restarts: 1, Round: 1, Delay: 3, Ahead: 1}}},
	{name: "restart, slack", large: true, model: Model{Bounds: Bounds{Restarts: 1, Delay: 4, Ahead: 1, Slack: 1}}},
	{name: "restart, skew", large: true, model: Model{Bounds: Bounds{Restarts: 1, Delay: 4, Ahead: 1, Skew: 1}}},
	{name: "restart, second copy", large: true, model: Model{Bounds: Bounds{Used: true, Restarts: 1, Delay: 2, Ahead: 1, Repeats: 1}}},

	{name: "second copy", model: Model{Bounds: Bounds{Used: true, Delay: 2, Ahead: 1, Repeats: 1}}},
	{name: "two second copies", large: true, model: Model{Bounds: Bounds{Used: true, Delay: 2, Ahead: 1, Repeats: 2}}},
	{name: "all clocks wrong", model: Model{Bounds: Bounds{Used: true, Wrong: 3, Delay: 2, Ahead: 1}}},
	{name: "restart, one clock wrong, honest numbers", model: Model{Bounds: Bounds{Restarts: 1, Wrong: 1, Honest: true, Delay: 2, Ahead: 1}}},
	{name: "restart, one clock at any time, honest numbers", large: true, model: Model{Bounds: Bounds{Restarts: 1, Wrong: 1, AnyTime: true, Honest: true, Delay: 2, Ahead: 1}}},

	{name: "FLUSHALL", model: Model{Bounds: Bounds{Used: true, Flushes: 1, Delay: 2, Ahead: 1}}},
	{name: "FLUSHALL, far ahead", model: Model{Bounds: Bounds{Used: true, Flushes: 1, Delay: 2, Ahead: 2}}},
	{name: "FLUSHALL, late commands", model: Model{Bounds: Bounds{Used: true, Flushes: 1, Delay: 2, Ahead: 1, Late: true}}},
	{name: "FLUSHALL, two proposals", model: Model{Bounds: Bounds{Used: true, Flushes: 1, Delay: 2, Ahead: 1, Proposals: 2}}},
	{name: "FLUSHALL, restart", large: true, model: Model{Bounds: Bounds{Used: true, Flushes: 1, Restarts: 1, Delay: 2, Ahead: 1}}},
	{name: "FLUSHALL, a third attempt", large: true, model: Model{Bounds: Bounds{Used: true, Flushes: 1, Delay: 2, Ahead: 1, Others: 1}}},
	{name: "FLUSHALL, slack", large: true, model: Model{Bounds: Bounds{Used: true, Flushes: 1, Delay: 2, Ahead: 1, Slack: 1}}},
	{name: "FLUSHALL, skew", large: true, model: Model{Bounds: Bounds{Used: true, Flushes: 1, Delay: 1, Ahead: 3, Skew: 1}}},
	{name: "FLUSHALL, one clock wrong, honest numbers", large: true, model: Model{Bounds: Bounds{Used: true, Flushes: 1, Wrong: 1, Honest: true, Delay: 2, Ahead: 1}}},

	{name: "FLUSHALL, second copy", large: true, model: Model{Bounds: Bounds{Used: true, Flushes: 1, Delay: 2, Ahead: 1, Repeats: 1}}},
	{name: "FLUSHALL, no slack in T7 but far ahead", large: true, model: Model{Rules{FloorWithoutSlack: true}, Bounds{Used: true, Flushes: 1, Delay: 2, Ahead: 2, Slack: 1}}},

	{name: "block, restart", model: Model{Bounds: Bounds{Restarts: 1, Block: 1, Delay: 2, Ahead: 1}}},
	{name: "block, two restarts", large: true, model: Model{Bounds: Bounds{Restarts: 2, Block: 1, Delay: 2, Ahead: 1}}},
	{name: "block, restart, late commands", large: true, model: Model{Bounds: Bounds{Restarts: 1, Block: 1, Delay: 2, Ahead: 1, Late: true}}},
	{name: "block, restart, one clock wrong, honest numbers", large: true, model: Model{Bounds: Bounds{Restarts: 1, Wrong: 1, Honest: true, Block: 1, Delay: 2, Ahead: 1}}},
	{name: "block, second copy", large: true, model: Model{Bounds: Bounds{Used: true, Block: 1, Delay: 2, Ahead: 1, Repeats: 1}}},
	{name: "block, all clocks wrong", large: true, model: Model{Bounds: Bounds{Used: true, Wrong: 3, Block: 1, Delay: 2, Ahead: 1}}},
	{name: "block, FLUSHALL", model: Model{Bounds: Bounds{Used: true, Flushes: 1, Block: 1, Delay: 2, Ahead: 1}}},
	{name: "block, FLUSHALL, late commands", large: true, model: Model{Bounds: Bounds{Used: true, Flushes: 1, Block: 1, Delay: 2, Ahead: 1, Late: true}}},
	{name: "block, FLUSHALL, two proposals", large: true, model: Model{Bounds: Bounds{Used: true, Flushes: 1, Block: 1, Delay: 2, Ahead: 1, Proposals: 2}}},
}

// naive are forms of which each breaks one rule. With the same bounds the rules hold, as holds shows; but the forms of T6 and of a block
// beyond s are the bounds themselves.
var naive = []row{
	{name: "T1 a second copy finds its number", model: Model{Rules{CountsSecondCopy: true}, Bounds{Used: true, Delay: 2, Ahead: 1, Repeats: 1}}},
	{name: "T2 accepts an equal number", model: Model{Rules{AcceptsEqual: true}, Bounds{Used: true, Delay: 2, Ahead: 1, Repeats: 1}}},
	{name: "T2 p1 up to now and a", model: Model{Rules{TakesFar: true}, Bounds{Used: true, Flushes: 1, Delay: 2, Ahead: 2}}},
	{name: "T3 p1 where there is no counter", model: Model{Rules{TakesP1Anywhere: true}, Bounds{Used: true, Flushes: 1, Delay: 2, Ahead: 1}}},
	{name: "T3 p2 below now and a", large: true, model: Model{Rules{TakesPastP2: true}, Bounds{Used: true, Restarts: 2, Delay: 2, Ahead: 1}}},
	{name: "T5 takes of p1 and p2 added up", model: Model{Rules{AddsUp: true}, Bounds{Used: true, Flushes: 1, Delay: 2, Ahead: 1}}},
	{name: "T5 a minority decides", model: Model{Rules{MinorityDecides: true}, Bounds{Used: true, Delay: 2, Ahead: 1, Repeats: 1}}},
	{name: "T5 a young node counts", model: Model{Rules{YoungCounts: true}, Bounds{Restarts: 1, Delay: 2, Ahead: 1}}},
	{name: "T6 any number, and one clock wrong", model: Model{Bounds: Bounds{Restarts: 1, Wrong: 1, Delay: 2, Ahead: 1}}},
	{name: "T7 any number to late voters", large: true, model: Model{Rules{ProposesToLate: true}, Bounds{Used: true, Flushes: 1, Wrong: 1, Honest: true, Delay: 2, Ahead: 1}}},
	{name: "T7 any number where there is no counter", model: Model{Rules{AcceptsBehind: true, ProposesToLate: true}, Bounds{Used: true, Flushes: 1, Delay: 2, Ahead: 1}}},
	{name: "T7 any number where there is no counter, second copy", model: Model{Rules{AcceptsBehind: true}, Bounds{Used: true, Flushes: 1, Delay: 2, Ahead: 1, Repeats: 1}}},
	{name: "T7 no slack in the second round", model: Model{Rules{FloorWithoutSlack: true}, Bounds{Used: true, Flushes: 1, Delay: 2, Ahead: 1, Slack: 1}}},
	{name: "T7 a taken p2 passes for a counter", large: true, model: Model{Rules{TrustsTaken: true}, Bounds{Used: true, Flushes: 1, Wrong: 1, Honest: true, Delay: 2, Ahead: 1}}},
	{name: "T7 any number, whoever has the node", model: Model{Rules{AcceptsAnything: true}, Bounds{Restarts: 1, Delay: 2, Ahead: 1}}},
	{name: "T7 no clock", model: Model{Rules{NoClock: true}, Bounds{Restarts: 1, Delay: 2, Ahead: 1}}},
	{name: "T7 the latest clock", model: Model{Rules{LatestClock: true}, Bounds{Restarts: 1, Wrong: 1, Honest: true, Delay: 2, Ahead: 1}}},
	{name: "T7 not ahead", model: Model{Rules{NotAhead: true}, Bounds{Used: true, Flushes: 1, Delay: 2, Ahead: 1}}},
	{name: "T8 a node looks at the last token", model: Model{Rules{LooksAtLast: true}, Bounds{Used: true, Block: 1, Delay: 2, Ahead: 1}}},
	{name: "T8 the counter is set to the first token", model: Model{Rules{SetsFirst: true}, Bounds{Used: true, Block: 1, Delay: 2, Ahead: 1}}},
	{name: "T8 a block from the second round", model: Model{Rules{BlocksAgain: true}, Bounds{Used: true, Block: 1, Delay: 2, Ahead: 1}}},
	{name: "T8 a block beyond the time and s", model: Model{Rules{Beyond: true}, Bounds{Restarts: 1, Block: 7, Delay: 2, Ahead: 1}}},
}

// limits are what the rules do not promise: after two FLUSHALL both attempts are told of no counter.
var limits = []row{
	{name: "two FLUSHALL", model: Model{Bounds: Bounds{Used: true, Flushes: 2, Delay: 2, Ahead: 1}}},
}

func TestHolds(t *testing.T) {
	for _, r := range holds {
		r.run(t, func(t *testing.T, o Outcome) {
			if o.Refuted != "" {
				t.Errorf("refuted: %s", o.Refuted)
				way(t, o)
			}
		})
	}
}

func TestNaive(t *testing.T)  { mustBeRefuted(t, naive) }
func TestLimits(t *testing.T) { mustBeRefuted(t, limits) }

func mustBeRefuted(t *testing.T, rows []row) {
	for _, r := range rows {
		r.run(t, func(t *testing.T, o Outcome) {
			if o.Refuted == "" {
				t.Error("not refuted")
				return
			}
			t.Logf("refuted, as it should be: %s", o.Refuted)
			if testing.Verbose() {
				way(t, o)
			}
		})
	}
}

// T2, p1 below the node's time: that matters only when a wrong clock has made a counter too small. The search for it from the beginning
// is too large. So this one begins in the middle: X has its token, which A and B took. B has a wrong clock, has restarted since
// then, and counts again. A third attempt may still make a counter of B.
func TestPast(t *testing.T) {
	m := Model{Bounds: Bounds{Used: true, Wrong: 1, Honest: true, Delay: 2, Ahead: 1, Longer: 1, Others: 1}}
	s := State{now: uint8(m.lastTick()), others: 1}
	token := uint8((m.lastTick() - m.Delay) * m.perTick()) // as at the time when B restarted
	s.nodes = [nodes]Node{{counter: token}, {wrong: true}, {counter: 1}}
	s.attempts[0] = Attempt{phase: complete, begins: token, done: token}
	if o := m.search([]State{s}, limit); o.Refuted != "" || o.GaveUp {
		t.Errorf("refuted: %s", o.Refuted)
		way(t, o)
	}
	m.TakesPast = true
	o := m.search([]State{s}, limit)
	if o.Refuted == "" {
		t.Errorf("not refuted in %d states", o.States)
	} else if testing.Verbose() {
		t.Logf("refuted, as it should be: %s", o.Refuted)
		way(t, o)
	}
}

// run searches, as a test of its own.
func (r row) run(t *testing.T, check func(*testing.T, Outcome)) {
	t.Run(r.name, func(t *testing.T) {
		most := limit
		if r.large {
			if !*all {
				t.Skip("with -all")
			}
			most = largeLimit
		}
		t.Parallel()
		slots <- struct{}{}
		defer func() { <-slots }()
		start := time.Now()
		o := r.model.Search(most)
		t.Logf("%d states in %.1f s", o.States, time.Since(start).Seconds())
		if o.GaveUp {
			t.Fatalf("gave up: more than %d states", most)
		}
		check(t, o)
	})
}

func way(t *testing.T, o Outcome) {
	for _, s := range o.Way {
		t.Log(s)
	}
}
