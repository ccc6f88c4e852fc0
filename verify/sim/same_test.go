package main

import (
	"testing"
	"time"
)

// A seed is one history: played again with other objects on the heap it is the same, event by event. Under another schedule it is another one, in
// most worlds.
func TestASeedIsOneHistory(t *testing.T) {
	program, remove, err := buildWorker(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer remove()
	const seeds = 6
	plays := []task{{}, {Noise: 333}, {Noise: 999}, {Noise: 2331}, {Limits: limits{Schedule: 1}}}
	hashes, others := make([]map[uint64]bool, seeds), make([]uint64, seeds)
	next := 0
	err = all(t.Context(), program, 2, func() (task, bool) {
		if next == seeds*len(plays) {
			return task{}, false
		}
		one := plays[next%len(plays)]
		one.Seed, one.Limits.Length = 5000+uint64(next/len(plays)), 10*time.Minute
		next++
		return one, true
	}, func(o outcome) {
		which := o.Seed - 5000
		if o.Plan.Schedule > 0 {
			others[which] = o.Hash
			return
		}
		if hashes[which] == nil {
			hashes[which] = make(map[uint64]bool)
		}
		hashes[which][o.Hash] = true
	})
	if err != nil {
		t.Fatal(err)
	}
	other := 0
	for which, of := range hashes {
		if len(of) > 1 {
			t.Errorf("seed %d has %d histories", 5000+which, len(of))
		}
		if !of[others[which]] {
			other++
		}
	}
	if other < seeds/2 {
		t.Errorf("another schedule made another history of %d of %d worlds", other, seeds)
	}
}
