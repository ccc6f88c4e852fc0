package quorum

import (
	"errors"
	"slices"
	"time"

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
	nodes, rest := s.nodes, []*node(nil)
	first := s.contended(o.Keys.Channel())
	if first != nil {
		nodes = []*node{first}
		rest = slices.DeleteFunc(slices.Clone(s.nodes), func(n *node) bool { return n == first })
	}
	e.votes.judge = func(final bool) (bool, func()) {
		if rest != nil {
			a := e.votes.asks[first.index]
			if a.state == pending && !final {
				return false, nil
			}
			if a.state == answered && !a.yes {
				if pause, believed := s.believes(o.Keys.Channel(), a.report.Holder); believed {
					ttl := sooner(a.report.TTL, pause)
					return true, func() { done(scripts.Answer{TTL: ttl, Owed: s.drop(o.Field, b)}, nil) }
				}
			}
			more := rest
			rest = nil
			b.voting(more, lease)
			e.votes.widen(more, s.within(o.Lease))
			return false, nil
		}
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
			if owner == nil {
				b.giveUp(s.first(o.Keys.Channel()))
			}
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
	e.lost = func() { e.done(scripts.Answer{TTL: s.split(o.Keys.Channel())}, nil) }
	if !b.voting(nodes, lease) {
		done(scripts.Answer{}, errors.New("quorum: the field of a hold was used again"))
		return
	}
	e.votes.start(s.nodes, nodes, s.within(o.Lease))
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
		pause := s.owns(e.order.Keys.Channel(), &e.votes, owner.field)
		return scripts.Answer{TTL: sooner(owner.lasts(len(s.nodes)-s.most+1), pause)}, nil
	}
	counting := 0
	for a := range e.votes.all {
		if counts(a) {
			counting++
		}
	}
	s.failed(e.order.Keys.Channel())
	if counting < s.most {
		return scripts.Answer{}, s.missing(&e.votes, counts)
	}
	return scripts.Answer{TTL: s.split(e.order.Keys.Channel()), Why: ErrSplitVote}, nil
}

// propose asks the nodes that have the hold to accept a token: one more than the largest that a majority has told of, and
// than the floor.
func (e *election) propose() {
	s, o := e.store, e.order
	e.votes.mu.Lock()
	var yes []*node
	for a := range e.votes.all {
		if a.yes {
			yes = append(yes, a.node)
		}
	}
	e.token = max(e.token, e.floor()) + 1
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

// floor is what the next token has to exceed by what the nodes that count have told: the largest of their counters, and
// their time, so that tokens grow although a node has forgotten its counter. The time is the one in the middle of theirs,
// which no single clock can move to where the others are not; of two clocks nobody knows which is right, so that the
// client's is the third. A node without a counter may have forgotten it a moment ago: then the floor is higher by more
// than clocks may differ, see the package doc. With votes.mu held.
func (e *election) floor() int64 {
	var times []int64
	var counter, ahead int64
	for a := range e.votes.all {
		if !counts(a) {
			continue
		}
		times = append(times, a.report.Time)
		counter = max(counter, a.report.Counter)
		if a.report.Counter == 0 {
			ahead = e.store.delay.Microseconds() / 4
		}
	}
	if len(times) == 2 {
		times = append(times, time.Now().UnixMicro())
	}
	slices.Sort(times)
	if len(times) == 0 { // they have all restarted since they answered: the proposal will fail
		return counter
	}
	return max(counter, times[len(times)/2]+ahead-1)
}

// tally counts the answers to a proposal. With p.mu held.
func (e *election) tally(p *round, token int64, final bool) (bool, func()) {
	s := e.store
	accepted, refused, gone, open := 0, 0, 0, 0
	var larger int64
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
			larger = max(larger, a.report.Counter)
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
			e.token = max(e.token, larger)
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
