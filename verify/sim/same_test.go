package main

import (
	"slices"
	"testing"
	"time"
)

// A seed is one history: played again with other objects on the heap it is the same, event by event. In another order of what happens at one time
// it is another one, in most worlds.
func TestASeedIsOneHistory(t *testing.T) {
	program, remove, err := buildWorker(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer remove()
	const seeds = 6
	plays := []task{{}, {Noise: 333}, {Noise: 999}, {Limits: limits{Order: 1}}, {Limits: limits{Order: 1}, Noise: 666}}
	hashes := make([][]uint64, seeds)
	next := 0
	err = all(t.Context(), program, 2, func() (task, bool) {
		if next == seeds*len(plays) {
			return task{}, false
		}
		one := plays[next%len(plays)]
		one.Seed, one.Limits.Length = uint64(next/len(plays)), 10*time.Minute
		next++
		return one, true
	}, func(o outcome) { hashes[o.Seed] = append(hashes[o.Seed], o.Hash) })
	if err != nil {
		t.Fatal(err)
	}
	other := 0
	for seed, of := range hashes {
		slices.Sort(of)
		switch len(slices.Compact(of)) {
		case 1:
		case 2:
			other++
		default:
			t.Errorf("seed %d has several histories", seed)
		}
		t.Log(of)
	}
	if other < seeds/2 {
		t.Errorf("another order made another history of %d of %d worlds", other, seeds)
	}
}
