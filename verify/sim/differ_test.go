package main

import (
	"math/rand/v2"
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
