package engine

import "testing"

// What follows for each pair of state and event: written again by hand, as the table decides what every waiter does.
func TestWaitTable(t *testing.T) {
	want := map[waitState]map[waitEvent]waitState{
		queued:    {leads: watching, mayAsk: ready, handoffBegun: receiving},
		watching:  {mayAsk: ready, yields: yielding, waitsOn: watching, handoffBegun: receiving},
		yielding:  {mayAsk: ready, yields: yielding, waitsOn: watching, handoffBegun: receiving},
		ready:     {mayAsk: ready, yields: ready, waitsOn: ready, lockGiven: watching, attemptSent: asking, handoffBegun: receiving},
		asking:    {commandOver: watching},
		receiving: {mayAsk: ready, commandOver: watching},
	}
	for s := range waitState(waitStates) {
		for e := range waitEvent(waitEvents) {
			w := waiter{queueWait: queueWait{state: s}}
			w.on(e)
			to, listed := want[s][e]
			switch {
			case listed && (w.state != to || waitTable[s][e] == never):
				t.Errorf("state %d, event %d: %d follows, want %d", s, e, w.state, to)
			case !listed && (w.state != s || waitTable[s][e] != never):
				t.Errorf("state %d, event %d: %d follows, and it never happens", s, e, w.state)
			}
		}
	}
}

// From every state a waiter gets to ask: in none of them it can stay for ever.
func TestWaitTableHasNoDeadEnd(t *testing.T) {
	for s := range waitState(waitStates) {
		reached := map[waitState]bool{s: true}
		for range waitStates {
			for from := range reached {
				for _, to := range waitTable[from] {
					if to != never {
						reached[to] = true
					}
				}
			}
		}
		if !reached[ready] || !reached[asking] {
			t.Errorf("from state %d it never asks", s)
		}
	}
}
