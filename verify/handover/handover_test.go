package handover

import (
	"flag"
	"testing"
	"time"
)

var all = flag.Bool("all", false, "run also the larger searches")

const (
	limit      = 3_000_000  // of the states of a search
	largeLimit = 20_000_000 // of those with -all
)

// slots are for the searches that run at the same time.
var slots = make(chan struct{}, 2)

// row is one search.
type row struct {
	name  string
	model Model
	large bool // only with -all
}

// holds are the searches that must go through all states and find nothing.
var holds = []row{
	{name: "votes, calls and releases", model: Model{Bounds: Bounds{Attempts: 2}}},
	{name: "ForceUnlock", model: Model{Bounds: Bounds{Attempts: 2, Forces: 1}}},
	{name: "renewal", model: Model{Bounds: Bounds{Attempts: 2, Renewals: 1}}},
	{name: "second copy of a vote", model: Model{Bounds: Bounds{Attempts: 2, Copies: 1}}},
	{name: "all nodes call", model: Model{Bounds: Bounds{Attempts: 2, AllCall: true}}},
	{name: "own field", model: Model{Bounds: Bounds{Attempts: 2, Own: true}}},
	{name: "owner that sends no release any more", model: Model{Bounds: Bounds{Attempts: 2, Settles: true}}},
	{name: "ForceUnlock, renewal", large: true, model: Model{Bounds: Bounds{Attempts: 2, Forces: 1, Renewals: 1}}},
	{name: "ForceUnlock, all nodes call, own field", large: true, model: Model{Bounds: Bounds{Attempts: 2, Forces: 1, AllCall: true, Own: true}}},

	{name: "three", model: Model{Bounds: Bounds{Attempts: 3, Ignore: verdicts}}},
	{name: "three, ForceUnlock", model: Model{Bounds: Bounds{Attempts: 3, Forces: 1, Ignore: verdicts}}},
	{name: "three, own field", model: Model{Bounds: Bounds{Attempts: 3, Own: true, Ignore: verdicts}}},
	{name: "three, ForceUnlock, renewal", large: true, model: Model{Bounds: Bounds{Attempts: 3, Forces: 1, Renewals: 1, Ignore: verdicts}}},
	{name: "three, second copy of a vote", model: Model{Bounds: Bounds{Attempts: 3, Copies: 1, Ignore: verdicts}}},

	{name: "tokens in the second round", model: Model{Bounds: Bounds{Attempts: 2, Tokens: true, Ignore: verdicts}}},
	{name: "tokens in one round", model: Model{Bounds: Bounds{Attempts: 2, Tokens: true, OneRound: true, Forces: 1, Ignore: verdicts}}},
	{name: "tokens, second copy of a vote", model: Model{Bounds: Bounds{Attempts: 2, Tokens: true, OneRound: true, Copies: 1, Ignore: verdicts}}},
	{name: "tokens, renewal", model: Model{Bounds: Bounds{Attempts: 2, Tokens: true, OneRound: true, Renewals: 1, Ignore: verdicts}}},
	{name: "three, tokens", large: true, model: Model{Bounds: Bounds{Attempts: 3, Tokens: true, OneRound: true, Ignore: verdicts}}},
}

// naive are forms of which each breaks one rule. With the same bounds the rules hold, as holds shows.
var naive = []row{
	{name: "R7 drops whatever it finds", model: Model{Rules{DropsAny: true}, Bounds{Attempts: 3, Ignore: verdicts}}},
	{name: "R7 own field whose Unlock is not over", model: Model{Rules{DropsUnlocking: true}, Bounds{Attempts: 2, Own: true}}},
	{name: "R8 late yes withdrawn, named", model: Model{Rules{WithdrawsLate: true}, Bounds{Attempts: 2}}},
	{name: "R8 late yes withdrawn, not named, renewal", model: Model{Rules{WithdrawsUnnamed: true}, Bounds{Attempts: 2, Renewals: 1}}},
	{name: "R8 ForceUnlock names", model: Model{Rules{ForceNames: true}, Bounds{Attempts: 2, Forces: 1}}},
	{name: "R8 counts votes after it gave up", model: Model{Rules{CountsAfterGiveUp: true}, Bounds{Attempts: 2}}},
	{name: "R8 counts votes after it gave up: exclusion", model: Model{Rules{CountsAfterGiveUp: true}, Bounds{Attempts: 2, Ignore: GivenUp | verdicts}}},
	{name: "R8 asks after the Unlock", model: Model{Rules{AsksAfterUnlock: true}, Bounds{Attempts: 2, Renewals: 1, Settles: true}}},
	{name: "R9 what is gone counts as released", model: Model{Rules{GoneIsReleased: true}, Bounds{Attempts: 2, Forces: 1}}},
	{name: "R9 what is gone counts as lost", model: Model{Rules{GoneIsLost: true}, Bounds{Attempts: 2}}},
	{name: "R9 says lost without the home's answer", model: Model{Rules{LostWithoutAnswer: true}, Bounds{Attempts: 2}}},
	{name: "R9 the home alone, all nodes call", model: Model{Rules{HomeAlone: true}, Bounds{Attempts: 2, AllCall: true}}},
	{name: "T2 the number of a called client is not looked at", model: Model{Rules{TakesUnchecked: true}, Bounds{Attempts: 3, Tokens: true, OneRound: true, Ignore: verdicts}}},
}

// harmless are forms that break a rule, or go beyond the rules, and are not refuted within these bounds. They hold as the rules do.
var harmless = []row{
	{name: "R8 ForceUnlock names: nothing, if any ForceUnlock ends the hold", large: true, model: Model{Rules{ForceNames: true}, Bounds{Attempts: 2, Forces: 1, ExemptAny: true}}},
	{name: "R8 ForceUnlock names: nothing for others", model: Model{Rules{ForceNames: true}, Bounds{Attempts: 3, Forces: 1, ExemptAny: true, Ignore: verdicts}}},
	{name: "R8 late yes withdrawn, not named", model: Model{Rules{WithdrawsUnnamed: true}, Bounds{Attempts: 2}}},
	{name: "R8 late yes withdrawn, named: order", model: Model{Rules{WithdrawsLate: true}, Bounds{Attempts: 2, Tokens: true, Ignore: Exclusion | verdicts}}},
	{name: "R8 late yes withdrawn, named: order of three", large: true, model: Model{Rules{WithdrawsLate: true}, Bounds{Attempts: 3, Tokens: true, Ignore: Exclusion | verdicts}}},
	{name: "R8 asks after the Unlock: no more than a field that stays", model: Model{Rules{AsksAfterUnlock: true}, Bounds{Attempts: 2, Renewals: 1}}},
	{name: "R10 calls by name where it found nothing", model: Model{Rules{CallsUnfound: true}, Bounds{Attempts: 2}}},
	{name: "R10 calls by name where it found nothing, ForceUnlock", large: true, model: Model{Rules{CallsUnfound: true}, Bounds{Attempts: 2, Forces: 1}}},
}

// told are the searches with the other form of R9. What the rules do not promise (limits) holds there too.
var told = []row{
	{name: "all nodes call, releases come twice", model: Model{Rules{NodesTell: true}, Bounds{Attempts: 2, NamedToo: true, AllCall: true, Again: true}}},
	{name: "renewal", model: Model{Rules{NodesTell: true}, Bounds{Attempts: 2, NamedToo: true, Renewals: 1}}},
	{name: "ForceUnlock", large: true, model: Model{Rules{NodesTell: true}, Bounds{Attempts: 2, NamedToo: true, Forces: 1}}},
	{name: "ForceUnlock, renewal", large: true, model: Model{Rules{NodesTell: true}, Bounds{Attempts: 2, NamedToo: true, Forces: 1, Renewals: 1}}},
}

// limits are what the rules do not promise.
var limits = []row{
	{name: "ForceUnlock that missed the home", model: Model{Bounds: Bounds{Attempts: 2, Forces: 1, NamedToo: true}}},
	{name: "release that comes twice before the Unlock is over", model: Model{Bounds: Bounds{Attempts: 2, Again: true}}},
}

func TestHolds(t *testing.T)     { mustHold(t, holds) }
func TestHarmless(t *testing.T)  { mustHold(t, harmless) }
func TestNodesTell(t *testing.T) { mustHold(t, told) }
func TestNaive(t *testing.T)     { mustBeRefuted(t, naive) }
func TestLimits(t *testing.T)    { mustBeRefuted(t, limits) }

func mustHold(t *testing.T, rows []row) {
	for _, r := range rows {
		r.run(t, r.model.Search, func(t *testing.T, o Outcome) {
			if o.Refuted != "" {
				t.Errorf("refuted: %s", o.Refuted)
				way(t, r.model.Shortest(limit))
			}
		})
	}
}

func mustBeRefuted(t *testing.T, rows []row) {
	for _, r := range rows {
		r.run(t, r.model.Shortest, func(t *testing.T, o Outcome) {
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

// run searches, as a test of its own.
func (r row) run(t *testing.T, search func(int) Outcome, check func(*testing.T, Outcome)) {
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
		o := search(most)
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
