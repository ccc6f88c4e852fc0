package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"
)

// pretended is what a plan comes to where the rule is violated by a call that waits for a second or more, and has the lock for so long, beside a
// fault of its client that lasts so long.
func pretended(p plan) outcome {
	o := outcome{Plan: p}
	for i, c := range p.Clients {
		name := fmt.Sprintf("c%d.1", i)
		o.History = append(o.History, event{Kind: started, Client: name})
		for k, caller := range c.Callers {
			at := time.Duration(0)
			for _, one := range caller.Calls {
				at += one.Pause
				o.History = append(o.History, event{At: at, Kind: asks, Client: name, Caller: k, Levels: 1})
				cut := slices.ContainsFunc(p.Faults, func(f fault) bool { return f.Kind == "cut" && f.Client == i && f.For >= time.Second })
				if len(o.Violations) == 0 && cut && one.Hold >= time.Second && one.Wait >= time.Second {
					o.Violations = []violation{{Rule: nobodySleep, At: at}}
				}
				at += one.Hold + one.Nested
			}
		}
	}
	slices.SortStableFunc(o.History, func(a, b event) int { return cmp.Compare(a.At, b.At) })
	return o
}

// shrunk shrinks the plan in so many tries, and returns the plans that were played, too.
func shrunk(p plan, tries int) (o outcome, played []string) {
	s := shrinking{best: pretended(p), rule: nobodySleep, left: tries, played: make(map[string]bool), play: func(p plan) (outcome, error) {
		text, _ := json.Marshal(p)
		played = append(played, string(text))
		return pretended(p), nil
	}}
	s.shrinks()
	return s.best, played
}

// large is a plan that has all that can be left out.
func large() plan {
	p := plan{Seed: 1, Servers: 1, Floor: true, Stable: true, Locks: 3, Storm: 20 * time.Minute, Calm: 3 * time.Minute}
	for range 4 {
		var c callerPlan
		for range 10 {
			c.Calls = append(c.Calls, call{Pause: time.Minute, Lock: 1, Wait: time.Minute, Lease: time.Minute, GiveUp: time.Minute, Hold: time.Minute, Ends: true, Nested: time.Second, Other: 2})
		}
		p.Clients = append(p.Clients, clientPlan{Callers: []callerPlan{c, c}})
	}
	for i := range 6 {
		p.Faults = append(p.Faults, fault{Kind: []string{"cut", "late"}[i%2], At: time.Duration(i) * time.Minute, For: time.Minute, Client: i % 4})
	}
	return p
}

func TestShrink(t *testing.T) {
	o, played := shrunk(large(), 300)
	got := o.Plan
	if len(got.Clients) != 1 || callers(&got) != 1 || calls(&got) != 1 || len(got.Faults) != 1 || got.Locks != 1 || got.Floor || got.Stable {
		t.Fatalf("%+v", got)
	}
	one := got.Clients[0].Callers[0].Calls[0]
	if small := func(d time.Duration) bool { return d >= time.Second && d < 2*time.Second }; !small(one.Hold) || !small(one.Wait) || !small(got.Faults[0].For) {
		t.Errorf("not short: %+v, %+v", one, got.Faults[0])
	}
	if one.Lease != 0 || one.GiveUp != 0 || one.Ends || one.Nested != 0 || one.Other != one.Lock {
		t.Errorf("not simple: %+v", one)
	}
	if got.Storm+got.Calm > o.Violations[0].At+time.Minute+time.Second {
		t.Errorf("it goes on until %v, after a violation at %v", got.Storm+got.Calm, o.Violations[0].At)
	}
	slices.Sort(played)
	if n := len(played); len(slices.Compact(played)) != n {
		t.Error("a plan was played twice")
	}
}

func TestShrinkGoesByTries(t *testing.T) {
	if _, played := shrunk(large(), 7); len(played) != 7 {
		t.Errorf("%d tries, not 7", len(played))
	}
	if o := shrink(context.Background(), settings{program: "none", shrink: 7}, pretended(large()), t.Output()); calls(&o.Plan) != calls(new(large())) {
		t.Error("what could not be played was kept")
	}
}

// What is left of a plan has its times, and its locks.
func TestShrinkKeepsTheRest(t *testing.T) {
	p := plan{Locks: 3, Clients: []clientPlan{{Callers: []callerPlan{{[]call{{Pause: 1, Hold: 2, Nested: 3}, {Pause: 4, Lock: 2, Other: 2}}}}}}}
	p.Faults = []fault{{Kind: "delete", X: 5}, {Kind: "late", X: 5}}
	leaveOutCalls(&p, 0, 1)
	if c := p.Clients[0].Callers[0].Calls; len(c) != 1 || c[0].Pause != 10 {
		t.Errorf("%+v", c)
	}
	s := shrinking{best: outcome{Plan: p, Violations: []violation{{Rule: itEnds}}}, rule: itEnds, left: 1, played: make(map[string]bool), play: func(p plan) (outcome, error) {
		return outcome{Plan: p, Violations: []violation{{Rule: itEnds}}}, nil
	}}
	s.locks()
	got := s.best.Plan
	if c := got.Clients[0].Callers[0].Calls[0]; got.Locks != 2 || c.Lock != 1 || c.Other != 1 || got.Faults[0].X != 1 || got.Faults[1].X != 5 {
		t.Errorf("%+v", got)
	}
}

// A call that becomes shorter leaves the next one its time.
func TestShrinkKeepsTimes(t *testing.T) {
	p := plan{Locks: 1, Clients: []clientPlan{{Callers: []callerPlan{{[]call{{Pause: time.Second, Hold: time.Second, Nested: time.Second}, {Pause: time.Second}}}}}}}
	s := shrinking{best: outcome{Plan: p, Violations: []violation{{}}}, left: 50, played: make(map[string]bool), play: func(p plan) (outcome, error) {
		return outcome{Plan: p, Violations: []violation{{}}}, nil
	}}
	s.simpler(true)
	c := s.best.Plan.Clients[0].Callers[0].Calls
	if c[0].Hold >= 2*time.Millisecond || c[0].takes()+c[1].Pause != 4*time.Second {
		t.Errorf("%+v", c)
	}
}
