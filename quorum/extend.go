package quorum

import (
	"time"

	"github.com/fencelock/fencelock/scripts"
)

// extend extends a hold's lease on a majority of the nodes, and takes the lock anew for it on those that have lost it, or
// never had it. Where somebody has released it on a majority it is gone. Lease 0 only asks.
func (s *store) extend(keys *scripts.Keys, field string, lease time.Duration, done func(error)) {
	b, _ := s.find(field)
	if b == nil {
		done(scripts.ErrGone) // released, or expired everywhere
		return
	}
	if lease > 0 {
		lease += keep
	}
	r := &round{op: func() scripts.Op { return scripts.Extend(keys, field, lease) }}
	extended := false // guarded by r.mu
	r.heard = func(a *ask) {
		switch {
		case a.state != answered:
		case a.yes:
			b.extended(a, lease)
		case extended && lease > 0:
			go s.retake(b, keys, field, lease, []*node{a.node}, nil, nil)
		}
	}
	r.judge = func(final bool) (bool, func()) {
		held, there, removed, open := 0, 0, 0, 0
		var bare []*node // without it
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
				bare = append(bare, a.node)
				if b.removed(a) {
					removed++
				}
			}
		}
		switch {
		case held >= s.most, lease == 0 && there >= s.most:
			extended = true
			return true, func() {
				done(nil)
				if lease > 0 && len(bare) > 0 {
					s.retake(b, keys, field, lease, bare, nil, nil)
				}
			}
		case s.freed(removed, len(bare)):
			return true, func() { done(scripts.ErrGone) }
		case open > 0:
			return false, nil
		case lease > 0 && removed == 0 && len(bare) > 0: // also where they are too few, or do not count: they will
			return true, func() {
				s.retake(b, keys, field, lease, bare, r, func(more int, err error) {
					if held+more >= s.most {
						err = nil
					}
					done(err)
				})
			}
		}
		err := s.missing(r, func(a *ask) bool { return a.yes && counts(a) })
		return true, func() { done(err) }
	}
	r.start(s.nodes, s.nodes, s.within(lease))
}

// freed tells whether a hold has been forced open, going by how many nodes had it and have not, and how many have not in all.
func (s *store) freed(removed, bare int) bool {
	return removed > len(s.nodes)-s.most || removed > 0 && bare >= s.most
}

// retake takes the lock on nodes for a hold that has a part of the others. It is a vote as every other: what it takes is
// released with the hold. done, unless nil, is told how many that count said yes; first is the round that found them.
func (s *store) retake(b *ballot, keys *scripts.Keys, field string, lease time.Duration, nodes []*node, first *round, done func(more int, err error)) {
	r := &round{op: func() scripts.Op { return scripts.Vote(keys, field, lease) }}
	r.heard = func(a *ask) { b.voted(a, lease) }
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
		err := s.missing(r, good)
		return true, func() { done(more, s.before(err, first, r, good)) }
	}
	if !b.voting(nodes, lease) {
		if done != nil {
			done(0, scripts.ErrGone)
		}
		return
	}
	r.start(s.nodes, nodes, s.within(lease))
}
