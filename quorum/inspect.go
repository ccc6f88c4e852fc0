package quorum

import (
	"context"

	"github.com/fencelock/fencelock/scripts"
)

// Inspect implements seam.Store: who has a majority has the lock.
func (s *store) Inspect(_ context.Context, keys *scripts.Keys, field string) (scripts.State, error) {
	type outcome struct {
		state scripts.State
		err   error
	}
	ch := make(chan outcome, 1)
	r := &round{op: func() scripts.Op { return scripts.Look(keys, field) }}
	r.judge = func(final bool) (bool, func()) {
		if !final {
			return false, nil // an expiry is told by the last of the nodes
		}
		answers := 0
		state := scripts.State{TTL: scripts.NoKey}
		var change int64 = -1
		for a := range r.all {
			if a.state != answered {
				continue
			}
			answers++
			if a.report.Count > 0 && a.report.Change > change {
				change, state.Count = a.report.Change, a.report.Count
			}
		}
		all := grips(r)
		unknown := len(s.nodes) - answers
		switch err := s.twins(r); {
		case err != nil:
			return true, func() { ch <- outcome{err: err} }
		case len(all) > 0 && len(all[0].ttls) >= s.most:
			state.Locked, state.Field, state.TTL = true, all[0].field, all[0].lasts(s.most)
		case answers < s.most, len(all) > 0 && len(all[0].ttls)+unknown >= s.most:
			err := s.missing(r, func(a *ask) bool { return a.state == answered })
			return true, func() { ch <- outcome{err: err} }
		}
		if state.Field != field {
			state.Count = 0
		}
		return true, func() { ch <- outcome{state, nil} }
	}
	r.start(s.nodes, s.nodes, s.within(0))
	got := <-ch
	return got.state, got.err
}
