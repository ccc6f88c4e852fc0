package quorum

import (
	"context"

	"github.com/fencelock/fencelock/scripts"
)

// Inspect implements engine.Store. It waits for all nodes, until the node timeout. The lock is held where one hold has a majority
// of the nodes; State.TTL is how long that hold keeps its majority. It is an error where too few nodes answer to tell. A node that names no
// holder and does not count yet has started lately, and may have forgotten one: its answer tells nothing.
func (s *store) Inspect(_ context.Context, keys *scripts.Keys, field string) (scripts.State, error) {
	type outcome struct {
		state scripts.State
		err   error
	}
	ch := make(chan outcome, 1)
	r := &round{op: func(*node) scripts.Op { return scripts.Look(keys, field) }}
	tells := func(a *ask) bool {
		return a.state == answered && (a.report.Holder != "" && a.node.stranded() == nil || counts(a))
	}
	r.judge = func(final bool) (bool, func()) {
		if !final {
			return false, nil // how long a majority lasts is known when all nodes have answered
		}
		answers := 0
		state := scripts.State{TTL: scripts.NoKey}
		var change int64 = -1
		for a := range r.all {
			if !tells(a) {
				continue
			}
			answers++
			if a.report.Count > 0 && a.report.Change > change {
				change, state.Count = a.report.Change, a.report.Count
			}
		}
		all := shares(r)
		members, _ := s.sizes()
		unknown := members - answers
		switch err := s.checkDistinct(r); {
		case err != nil:
			return true, func() { ch <- outcome{err: err} }
		case len(all) > 0 && len(all[0].ttls) >= s.majority():
			state.Locked, state.Field, state.TTL = true, all[0].field, all[0].lasts(s.majority())
		case answers < s.majority(), len(all) > 0 && len(all[0].ttls)+unknown >= s.majority():
			err := s.majorityError(r, tells)
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
