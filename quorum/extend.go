package quorum

import (
	"time"

	"github.com/fencelock/fencelock/scripts"
)

// extend extends a hold's lease on a majority of the nodes. On nodes that have not got the hold, because they lost it or never
// had it, extend takes the lock for the hold by repair. done gets nil, or ErrGone where the hold is forced open or its record is
// gone, or an error where no majority confirmed. Lease 0 extends nothing: it only asks whether the hold is there.
func (s *store) extend(keys *scripts.Keys, field string, lease time.Duration, done func(error)) {
	rec, _ := s.find(field)
	if rec == nil {
		done(scripts.ErrGone) // every node has confirmed the release, or the hold expired on all of them
		return
	}
	if lease > 0 {
		lease += extraLease
	}
	r := &round{op: func() scripts.Op { return scripts.Extend(keys, field, lease) }, repeat: true}
	extended := false // a majority has confirmed; guarded by r.mu
	r.heard = func(a *ask) {
		switch {
		case a.state != answered:
		case a.yes:
			rec.extended(a, lease)
		case extended && lease > 0:
			go s.repair(rec, keys, field, lease, []*node{a.node}, nil, nil)
		}
	}
	r.judge = func(final bool) (bool, func()) {
		held, there, removed, open := 0, 0, 0, 0
		var without []*node // the nodes that have not got the hold
		for a := range r.all {
			switch {
			case a.state == pending && !final:
				open++
			case a.state != answered:
			case a.yes:
				there++
				if counts(a) {
					held++
				}
			default:
				without = append(without, a.node)
				if rec.removed(a) {
					removed++
				}
			}
		}
		switch {
		case held >= s.majority, lease == 0 && there >= s.majority:
			extended = true
			return true, func() {
				done(nil)
				if lease > 0 && len(without) > 0 {
					s.repair(rec, keys, field, lease, without, nil, nil)
				}
			}
		case s.forcedOpen(removed, len(without)):
			return true, func() { done(scripts.ErrGone) }
		case open > 0:
			return false, nil
		case lease > 0 && removed == 0 && len(without) > 0: // also where these nodes are too few for a majority, or do not count yet: they will
			return true, func() {
				s.repair(rec, keys, field, lease, without, r, func(more int, err error) {
					if held+more >= s.majority {
						err = nil
					}
					done(err)
				})
			}
		}
		err := s.majorityError(r, func(a *ask) bool { return a.yes && counts(a) })
		return true, func() { done(err) }
	}
	r.start(s.nodes, s.nodes, s.within(lease))
}

// forcedOpen tells whether a hold has been forced open: somebody has released it on more nodes than a majority can do without, or on one
// node at least while a majority has not got the hold. removed is how many nodes had the hold in their present run and have it no longer.
// The parameter without is how many nodes have not got the hold, for whatever reason.
func (s *store) forcedOpen(removed, without int) bool {
	return removed > len(s.nodes)-s.majority || removed > 0 && without >= s.majority
}

// repair asks these nodes for their votes, so that a hold which they have not got is on them too. The votes are votes as those of
// an acquire: what repair takes is released with the hold. first is the round which found that the nodes have not got the hold.
// done, unless nil, is called with the number of nodes that count and said yes, and with an error for the case that these are too
// few; with ErrGone where the hold is being released.
func (s *store) repair(rec *fieldRecord, keys *scripts.Keys, field string, lease time.Duration, nodes []*node, first *round, done func(more int, err error)) {
	r := &round{op: func() scripts.Op { return scripts.Vote(keys, field, lease) }}
	r.heard = func(a *ask) { rec.voted(a, lease) }
	r.judge = func(final bool) (bool, func()) {
		more, open := 0, 0
		for a := range r.all {
			switch {
			case a.state == pending && !final:
				open++
			case a.yes && counts(a):
				more++
			}
		}
		if open > 0 {
			return false, nil
		}
		if done == nil {
			return true, nil
		}
		good := func(a *ask) bool { return a.yes && counts(a) }
		err := s.majorityError(r, good)
		return true, func() { done(more, s.withEarlierRound(err, first, r, good)) }
	}
	if !rec.voting(nodes, lease) {
		if done != nil {
			done(0, scripts.ErrGone)
		}
		return
	}
	r.start(s.nodes, nodes, s.within(lease))
}
