package main

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// A crowd is of many callers, which want many locks for a moment, and one client of it keeps several.
func TestCrowd(t *testing.T) {
	p := newPlan(1, limits{Length: 30 * time.Minute})
	p.crowd(rand.New(rand.NewPCG(1, 4)), limits{})
	if len(p.lockNames()) != 30 || len(p.Clients) != 8 || len(p.Clients[1].Callers) != 10 {
		t.Errorf("a crowd has %d locks, %d clients, and %d callers each", len(p.lockNames()), len(p.Clients), len(p.Clients[1].Callers))
	}
	for place, c := range p.Clients {
		long := 0
		for _, caller := range c.Callers {
			for _, one := range caller.Calls {
				if one.Hold > 5*time.Millisecond {
					long++
				}
			}
		}
		if keeps := long > 0; keeps != (place == 0) {
			t.Errorf("client %d keeps %d locks", place, long)
		}
	}
}

// Of a hundred plans some are of crowds, in some a lock is forced open, calls nest up to four levels, and clients differ.
func TestDiffer(t *testing.T) {
	crowds, forced, short, present, strangers, deepest := 0, 0, 0, 0, 0, 0
	handoffs := make(map[int]bool)
	for seed := range uint64(100) {
		p := newPlan(seed, limits{Length: 30 * time.Minute})
		if p.Crowd {
			crowds++
		}
		if slices.ContainsFunc(p.Faults, func(f fault) bool { return f.Kind == forces }) {
			forced++
		}
		for _, c := range p.Clients {
			handoffs[c.Handoffs] = true
			if c.Presence {
				present++
			}
			if c.Lease > 0 && !p.Crowd {
				short++
			}
			for _, caller := range c.Callers {
				for _, one := range caller.Calls {
					deepest = max(deepest, one.Depth+1)
					if one.Stranger {
						strangers++
					}
				}
			}
		}
	}
	if crowds < 5 || crowds > 20 || forced < 20 || forced > 60 || short < 50 || present < 100 || strangers < 1000 || deepest != 4 || len(handoffs) != 3 {
		t.Errorf("of 100 plans %d are of crowds, in %d a lock is forced open, %d clients have short leases, and %d are present, %d calls have a stranger, they have up to %d levels, handoffs are %v",
			crowds, forced, short, present, strangers, deepest, handoffs)
	}
	if p := newPlan(1, limits{Length: 30 * time.Minute, Faults: []string{"none"}}); len(p.Faults) > 0 {
		t.Errorf("a plan without faults has %v", p.Faults)
	}
}
