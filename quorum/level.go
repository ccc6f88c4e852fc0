package quorum

import (
	"time"

	"github.com/fencelock/fencelock/scripts"
)

// A recount sets the hold count on a majority of the nodes: for a re-entry, which has a lease and may take a token, or for an inner
// unlock, which has lease 0.
type recount struct {
	election
	rec     *fieldRecord  // nil where the hold is gone
	lease   time.Duration // on the nodes
	repairs bool          // nodes without the hold may be repaired; they were not yet
}

// level sets the hold count. done gets Held, or neither Held nor an error where the hold is gone. A re-entry that finds the hold on too few
// nodes takes the lock for it on the nodes that have forgotten it or never had it, as a renewal does, and then asks all nodes once more.
func (s *store) level(o scripts.Order, done func(scripts.Answer, error)) { s.recount(o, true, done) }

// recount is level, with or without repairs.
func (s *store) recount(o scripts.Order, repairs bool, done func(scripts.Answer, error)) {
	rec, _ := s.find(o.Field)
	r := &recount{rec: rec, lease: o.Lease, repairs: repairs}
	if r.lease > 0 {
		r.lease += extraLease
	}
	r.election = election{store: s, order: o, done: done, lost: r.gone, enough: s.majority()}
	r.votes = round{op: r.set, heard: r.heard, judge: r.judge}
	r.votes.start(s.nodes, s.nodes, s.within(o.Lease))
}

// set makes the question for one node.
func (r *recount) set(*node) scripts.Op {
	return scripts.Recount(r.order.Keys, r.order.Field, r.lease, r.order.Count, r.order.Change)
}

// heard notes the outcome of one node.
func (r *recount) heard(a *ask) {
	if a.yes && r.rec != nil && r.lease > 0 {
		r.rec.extended(a.node, a.report.Run, r.lease)
	}
	r.votedLate(a)
}

// judge is the judge of the answers. An inner unlock promises no lease: for it every node's answer counts, and it is enough where the nodes
// that have the hold know the new count.
func (r *recount) judge(final bool) (over bool, then func()) {
	s, inner := r.store, r.order.Lease == 0
	t := r.tally(final)
	switch {
	case t.count >= s.majority() && r.order.Fenced:
		return true, r.propose
	case t.count >= s.majority():
		return true, r.held
	case s.forcedOpen(t.removed, len(t.without)):
		return true, r.gone
	case t.open > 0:
		return false, nil
	case inner && t.removed == 0 && t.count+len(t.without) >= s.majority():
		return true, r.held
	case !inner && t.removed == 0 && len(t.without) > 0 && r.repairs:
		return true, func() { r.repair(t) }
	}
	err := s.majorityError(&r.votes, saidYes)
	return true, func() { r.done(scripts.Answer{}, err) }
}

// tally counts the answers.
func (r *recount) tally(final bool) (t extended) {
	for a := range r.votes.all {
		switch {
		case a.state == pending && !final:
			t.open++
		case a.state == answered && a.report.Gone:
			t.without = append(t.without, a.node)
			if r.rec == nil || a.node.stranded() == nil && r.rec.forcedOff(a) {
				t.removed++
			}
		case a.yes && (r.order.Lease == 0 || counts(a)):
			t.count++
		}
	}
	return t
}

// held ends a recount that has succeeded.
func (r *recount) held() { r.done(scripts.Answer{Held: true}, nil) }

// gone ends a recount that found the hold gone.
func (r *recount) gone() { r.done(scripts.Answer{}, nil) }

// repair takes the lock for the hold on the nodes that have not got it, and then begins anew.
func (r *recount) repair(t extended) {
	fix := &repair{store: r.store, rec: r.rec, keys: r.order.Keys, field: r.order.Field, lease: r.lease, earlier: &r.votes}
	fix.done = func(more int, err error) {
		if t.count+more < r.store.majority() {
			r.done(scripts.Answer{}, err)
			return
		}
		r.store.recount(r.order, false, r.done)
	}
	fix.start(t.without)
}
