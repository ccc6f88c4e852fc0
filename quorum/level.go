package quorum

import "github.com/fencelock/fencelock/scripts"

// level sets the hold count on a majority of the nodes: for a re-entry, which has a lease and may take a token, or for an inner
// unlock, which has lease 0. done gets Held, or neither Held nor an error where the hold is gone.
func (s *store) level(o scripts.Order, done func(scripts.Answer, error)) { s.recount(o, true, done) }

// recount is level. With repair, a re-entry that finds the hold on too few nodes takes the lock for it on the nodes that have
// forgotten it or never had it, as a renewal does, and then asks all nodes once more.
func (s *store) recount(o scripts.Order, repair bool, done func(scripts.Answer, error)) {
	e := &election{store: s, order: o, done: done, enough: s.majority}
	rec, _ := s.find(o.Field)
	lease := o.Lease
	if lease > 0 {
		lease += extraLease
	}
	e.votes.op = func() scripts.Op { return scripts.Recount(o.Keys, o.Field, lease, o.Count, o.Change) }
	e.votes.heard = func(a *ask) {
		if a.yes && rec != nil && lease > 0 {
			rec.extended(a, lease)
		}
		if a.yes && e.proposal != nil {
			e.proposal.add(a.node)
		}
	}
	e.lost = func() { done(scripts.Answer{}, nil) }
	e.votes.judge = func(final bool) (bool, func()) {
		yes, removed, open := 0, 0, 0
		var without []*node // the nodes that have not got the hold
		for a := range e.votes.all {
			switch {
			case a.state == pending && !final:
				open++
			case a.state == answered && a.report.Gone:
				without = append(without, a.node)
				if rec == nil || rec.removed(a) {
					removed++
				}
			case a.yes && (o.Lease == 0 || counts(a)): // an inner unlock promises no lease: for it every node's answer counts
				yes++
			}
		}
		switch {
		case yes >= s.majority && !o.Fenced:
			return true, func() { done(scripts.Answer{Held: true}, nil) }
		case yes >= s.majority:
			return true, e.propose
		case s.forcedOpen(removed, len(without)):
			return true, e.lost
		case open > 0:
			return false, nil
		case o.Lease == 0 && removed == 0 && yes+len(without) >= s.majority:
			return true, func() { done(scripts.Answer{Held: true}, nil) } // an inner unlock: the nodes that have the hold know the new count
		case o.Lease > 0 && removed == 0 && len(without) > 0 && repair:
			return true, func() {
				s.repair(rec, o.Keys, o.Field, lease, without, &e.votes, func(more int, err error) {
					if yes+more < s.majority {
						done(scripts.Answer{}, err)
						return
					}
					s.recount(o, false, done)
				})
			}
		}
		err := s.majorityError(&e.votes, func(a *ask) bool { return a.yes && counts(a) })
		return true, func() { done(scripts.Answer{}, err) }
	}
	e.votes.start(s.nodes, s.nodes, s.within(o.Lease))
}
