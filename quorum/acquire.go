package quorum

import (
	"errors"

	"github.com/fencelock/fencelock/scripts"
)

// maxProposals bounds the numbers that one operation proposes: more than one is needed where a node that has not voted in
// time knows a larger one.
const maxProposals = 3

// maxToken is what no token may reach: beyond it Lua cannot count exactly.
const maxToken = 1 << 53

var errTooLarge = errors.New("ERR fencing counter has reached 2^53, where Lua cannot count exactly")

// An election is one operation that asks a majority for the lock, and for a token where it takes one.
type election struct {
	store  *store
	order  scripts.Order
	votes  round
	done   func(scripts.Answer, error)
	lost   func() // what becomes of a hold that is gone
	enough int    // from so many nodes

	// Guarded by votes.mu.
	proposal  *round
	proposals int
	token     int64
}

// acquire takes the lock on a majority of the nodes.
func (s *store) acquire(o scripts.Order, done func(scripts.Answer, error)) {
	b := s.ballot(o.Field)
	e := &election{store: s, order: o, enough: 1}
	lease := o.Lease + keep
	e.votes.op = func() scripts.Op { return scripts.Vote(o.Keys, o.Field, lease) }
	e.votes.heard = func(a *ask) {
		b.voted(a, lease)
		if e.proposal != nil && a.yes {
			e.proposal.add(a.node)
		}
	}
	e.votes.judge = func(final bool) (bool, func()) {
		yes, open := e.count(final)
		owner := e.owner()
		if yes < s.most && (yes+open >= s.most || open > 0 && owner == nil) {
			return false, nil // there may be a majority, or an owner that has one
		}
		answer, err := scripts.Answer{}, s.twins(&e.votes)
		switch {
		case err != nil:
		case yes >= s.most && o.Fenced:
			return true, e.propose
		case yes >= s.most:
			return true, func() { e.done(scripts.Answer{Held: true}, nil) }
		default:
			answer, err = e.refused(owner)
		}
		return true, func() {
			answer.Owed = s.drop(o.Field, b)
			if m, few := err.(*MajorityError); few {
				m.nothing = !answer.Owed
			}
			done(answer, err)
		}
	}
	e.done = func(answer scripts.Answer, err error) {
		if answer.Held {
			b.win()
		} else {
			answer.Owed = true
		}
		done(answer, err)
	}
	e.lost = func() { e.done(scripts.Answer{TTL: s.pause()}, nil) }
	if !b.voting(s.nodes, lease) {
		done(scripts.Answer{}, errors.New("quorum: the field of a hold was used again"))
		return
	}
	e.votes.start(s.nodes, s.nodes, s.within(o.Lease))
}

// count returns how many nodes that count said yes, and how many may do so in time.
func (e *election) count(final bool) (yes, open int) {
	for a := range e.votes.all {
		switch {
		case a.state == pending && !final:
			open++
		case a.yes && counts(a):
			yes++
		}
	}
	return yes, open
}

// owner is who else has a majority, or nil.
func (e *election) owner() *grip {
	if all := grips(&e.votes); len(all) > 0 && all[0].field != e.order.Field && len(all[0].ttls) >= e.store.most {
		return all[0]
	}
	return nil
}

// refused is why there was no majority: somebody else has one, or a part that is enough, or too few nodes count.
func (e *election) refused(owner *grip) (scripts.Answer, error) {
	s := e.store
	if owner != nil {
		return scripts.Answer{TTL: owner.lasts(len(s.nodes) - s.most + 1)}, nil
	}
	counting := 0
	for a := range e.votes.all {
		if counts(a) {
			counting++
		}
	}
	if counting < s.most {
		return scripts.Answer{}, s.missing(&e.votes, counts)
	}
	return scripts.Answer{TTL: s.pause()}, nil
}

// propose asks the nodes that have the hold to accept a token: one more than the largest that a majority has told of.
func (e *election) propose() {
	s, o := e.store, e.order
	e.votes.mu.Lock()
	var yes []*node
	for a := range e.votes.all {
		if a.state != answered {
			continue
		}
		if a.yes {
			yes = append(yes, a.node)
		}
		if counts(a) {
			e.know(a.report)
		}
	}
	e.token++
	e.proposals++
	if e.token >= maxToken {
		e.votes.mu.Unlock()
		e.done(scripts.Answer{}, &wrongNodes{errTooLarge})
		return
	}
	token := e.token
	p := &round{op: func() scripts.Op { return scripts.Raise(o.Keys, o.Field, token, o.Expiry) }}
	p.judge = func(final bool) (bool, func()) { return e.tally(p, token, final) }
	e.proposal = p
	p.start(s.nodes, yes, s.within(o.Lease))
	e.votes.mu.Unlock()
}

// know takes what a node told into account. With votes.mu held.
func (e *election) know(r *scripts.Report) {
	e.token = max(e.token, r.Counter)
	if e.order.Floor {
		e.token = max(e.token, r.Time-1)
	}
}

// tally counts the answers to a proposal. With p.mu held.
func (e *election) tally(p *round, token int64, final bool) (bool, func()) {
	s := e.store
	accepted, refused, gone, open := 0, 0, 0, 0
	var larger []*scripts.Report
	for a := range p.all {
		switch {
		case a.state == pending && !final:
			open++
		case !counts(a):
		case a.yes:
			accepted++
		case a.report.Gone:
			gone++
		default:
			refused++
			larger = append(larger, a.report)
		}
	}
	switch {
	case accepted >= s.most:
		return true, func() { e.done(scripts.Answer{Held: true, Token: token}, nil) }
	case accepted+open >= s.most:
		return false, nil
	case open > 0:
		return false, nil // they may know larger numbers still
	case accepted+refused >= s.most && e.proposals < maxProposals:
		return true, func() {
			e.votes.mu.Lock()
			for _, r := range larger {
				e.know(r)
			}
			e.votes.mu.Unlock()
			e.propose()
		}
	case gone >= e.enough:
		return true, e.lost
	}
	good := func(a *ask) bool { return a.yes && counts(a) }
	err := s.missing(p, good)
	return true, func() { e.done(scripts.Answer{}, s.before(err, &e.votes, p, good)) }
}
