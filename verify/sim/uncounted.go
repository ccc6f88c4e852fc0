package main

import (
	"math/rand/v2"
	"slices"

	"github.com/fencelock/fencelock/internal/test/fifo"
)

// uncounts is the fault of servers that count nobody who listens, as behind some proxies (P33).
const uncounts = "uncounted"

// uncounted has servers in some worlds count nobody: from the beginning of the world, or after a failover, at any time of the storm.
func (p *plan) uncounted(r *rand.Rand, only []string) (all []fault) {
	often, f := r.IntN(12), fault{Kind: uncounts, At: upTo(r, p.Storm/2), For: upTo(r, p.Storm/2)}
	if often > 1 && len(only) == 0 || len(only) > 0 && !slices.Contains(only, uncounts) {
		return nil
	}
	if often%2 == 0 {
		f.At, f.For = 0, p.Storm
	}
	return []fault{f}
}

// uncounts has all servers count nobody who listens, from new connections on.
func (w *world) uncounts(f fault) func() {
	for i, s := range w.servers {
		one := f
		one.Server = i
		back := w.away(one, func(*server) {})
		w.set(func() { s.published = fifo.New[[2]string]() })
		go s.publishes(s.published)
		back()
	}
	return func() {
		for _, s := range w.servers {
			w.set(s.counts)
		}
	}
}

// counts has the server count again who listens. With the network's mu held.
func (s *server) counts() {
	if s.published != nil {
		s.published.Close()
		s.published = nil
	}
}

// publishes says what was published while the server counted nobody, each after the script that has said it.
func (s *server) publishes(all *fifo.Queue[[2]string]) {
	for one, ok := all.Pop(); ok; one, ok = all.Pop() {
		s.m.Publish(one[0], one[1])
	}
}
