package quorum

import "github.com/fencelock/fencelock/scripts"

// level sets the hold count on a majority of the nodes.
func (s *store) level(o scripts.Order, done func(scripts.Answer, error)) { s.recount(o, true, done) }

// recount is level. retake: a re-entry that finds too few nodes with the hold takes it anew on those that have forgotten
// it, or never had it, as a renewal does, and asks once more.
func (s *store) recount(o scripts.Order, retake bool, done func(scripts.Answer, error)) {
	e := &election{store: s, order: o, done: done, enough: s.most}
	b, _ := s.find(o.Field)
	lease := o.Lease
	if lease > 0 {
		lease += keep
	}
	e.votes.op = func() scripts.Op { return scripts.Recount(o.Keys, o.Field, lease, o.Count, o.Change) }
	e.votes.heard = func(a *ask) {
		if a.yes && b != nil && lease > 0 {
			b.extended(a, lease)
		}
		if a.yes && e.proposal != nil {
			e.proposal.add(a.node)
		}
	}
	e.lost = func() { done(scripts.Answer{}, nil) }
	e.votes.judge = func(final bool) (bool, func()) {
		yes, removed, open := 0, 0, 0
		var bare []*node // without it
		for a := range e.votes.all {
			switch {
			case a.state == pending && !final:
				open++
			case a.state == answered && a.report.Gone:
				bare = append(bare, a.node)
				if b == nil || b.removed(a) {
					removed++
				}
			case a.yes && (o.Lease == 0 || counts(a)): // an inner unlock promises nothing
				yes++
			}
		}
		switch {
		case yes >= s.most && !o.Fenced:
			return true, func() { done(scripts.Answer{Held: true}, nil) }
		case yes >= s.most:
			return true, e.propose
		case s.freed(removed, len(bare)):
			return true, e.lost
		case open > 0:
			return false, nil
		case o.Lease == 0 && removed == 0 && yes+len(bare) >= s.most:
			return true, func() { done(scripts.Answer{Held: true}, nil) } // those that have it know
		case o.Lease > 0 && removed == 0 && len(bare) > 0 && retake:
			return true, func() {
				s.retake(b, o.Keys, o.Field, lease, bare, &e.votes, func(more int, err error) {
					if yes+more < s.most {
						done(scripts.Answer{}, err)
						return
					}
					s.recount(o, false, done)
				})
			}
		}
		err := s.missing(&e.votes, func(a *ask) bool { return a.yes && counts(a) })
		return true, func() { done(scripts.Answer{}, err) }
	}
	e.votes.start(s.nodes, s.nodes, s.within(o.Lease))
}
