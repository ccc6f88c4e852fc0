package quorum

import (
	"errors"
	"slices"
	"time"

	"github.com/fencelock/fencelock/scripts"
)

// maxProposals is how many tokens one operation proposes at most. A second proposal is needed where a node that has not voted
// in time has a larger counter.
const maxProposals = 3

// maxToken is the number that every token must be less than: beyond it Lua cannot count exactly.
const maxToken = 1 << 53

var errTooLarge = errors.New("ERR fencing counter has reached 2^53, where Lua cannot count exactly")

// An election is one acquire or re-entry: a round that asks the nodes for their votes (for the lock, or for the new hold count),
// and, where the operation takes a token, rounds that propose one.
type election struct {
	store  *store
	order  scripts.Order
	votes  round
	done   func(scripts.Answer, error)
	lost   func() // called in place of done where the hold is gone
	enough int    // so many nodes must answer a proposal that they have not got the hold, and it is gone

	// Guarded by votes.mu.
	proposal  *round // the latest one; nil before the first
	proposals int    // how many were made
	token     int64  // the latest that was proposed, or a larger counter that a node has told of
}

// acquire takes the lock on a majority of the nodes, and a token where the order asks for one. Where other clients want the lock
// too, it asks the first node alone, and then the other nodes, unless the first refuses for a hold that this client takes for the
// owner. done is called once: with Held, or with the time after which to look again, or with an error.
func (s *store) acquire(o scripts.Order, done func(scripts.Answer, error)) {
	rec := s.field(o.Field, o.Lease+extraLease)
	e := &election{store: s, order: o, enough: 1}
	lease := o.Lease + extraLease
	e.votes.op = func() scripts.Op { return scripts.Vote(o.Keys, o.Field, lease) }
	e.votes.heard = func(a *ask) {
		rec.voted(a, lease)
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
					return true, func() { done(scripts.Answer{TTL: ttl, Owed: s.drop(o.Field, rec)}, nil) }
				}
			}
			more := rest
			rest = nil
			if !rec.voting(more, lease) { // the call has ended meanwhile, and its release is under way
				return true, func() {
					rec.giveUp(first)
					done(scripts.Answer{Owed: s.drop(o.Field, rec)}, nil)
				}
			}
			if e.votes.widen(more, s.within(o.Lease)); e.votes.open > 0 {
				return false, nil
			}
		}
		yes, open := e.count(final)
		owner := e.owner()
		if yes < s.majority && (yes+open >= s.majority || open > 0 && owner == nil) {
			return false, nil // more answers may make a majority, or show an owner
		}
		answer, err := scripts.Answer{}, s.checkDistinct(&e.votes)
		switch {
		case err != nil:
		case yes >= s.majority && o.Fenced:
			return true, e.propose
		case yes >= s.majority:
			return true, func() { e.done(scripts.Answer{Held: true}, nil) }
		default:
			answer, err = e.refused(owner)
		}
		return true, func() {
			if owner == nil {
				rec.giveUp(s.first(o.Keys.Channel()))
			}
			answer.Owed = s.drop(o.Field, rec)
			if m, tooFew := err.(*MajorityError); tooFew {
				m.nothing = !answer.Owed
			}
			done(answer, err)
		}
	}
	e.done = func(answer scripts.Answer, err error) {
		if answer.Held {
			rec.win()
		} else {
			answer.Owed = true
		}
		done(answer, err)
	}
	e.lost = func() { e.done(scripts.Answer{TTL: s.split(o.Keys.Channel())}, nil) }
	if !rec.voting(nodes, lease) {
		done(scripts.Answer{}, errors.New("quorum: the field of a hold was used again"))
		return
	}
	e.votes.start(s.nodes, nodes, s.within(o.Lease))
}

// count returns how many of the nodes that count have voted yes, and how many nodes may still answer in time.
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

// owner returns the share of another hold that has the lock on a majority; nil if no answer shows one.
func (e *election) owner() *share {
	if all := shares(&e.votes); len(all) > 0 && all[0].field != e.order.Field && len(all[0].ttls) >= e.store.majority {
		return all[0]
	}
	return nil
}

// refused returns why an attempt got no majority: another hold is the owner, or the votes are split among several attempts, or
// too few nodes count. Only the last of these is an error.
func (e *election) refused(owner *share) (scripts.Answer, error) {
	s := e.store
	if owner != nil {
		pause := s.noteOwner(e.order.Keys.Channel(), &e.votes, owner.field)
		return scripts.Answer{TTL: sooner(owner.lasts(len(s.nodes)-s.majority+1), pause)}, nil
	}
	counting := 0
	for a := range e.votes.all {
		if counts(a) {
			counting++
		}
	}
	s.failed(e.order.Keys.Channel())
	if counting < s.majority {
		return scripts.Answer{}, s.majorityError(&e.votes, counts)
	}
	return scripts.Answer{TTL: s.split(e.order.Keys.Channel()), Why: ErrSplitVote}, nil
}

// propose asks the nodes that have voted yes to accept a token. The token is one more than the floor, or than the token proposed
// before or a larger counter that refused that. A token of 2^53 or more is an error.
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

// floor returns the number that the next token has to exceed, by the answers of the nodes that count: the largest of their
// counters, or their time in microseconds where that is larger, so that tokens grow although a node has forgotten its counter. The
// time is the middle one of the nodes' times: one wrong clock cannot move that beyond the others. Of two clocks nobody knows which
// is right, so the client's own clock is the third. A node without a counter may have forgotten it a moment ago: then a
// quarter of the delay is added to the time, which is more than clocks may differ (see the package doc). With votes.mu held.
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
	if len(times) == 0 { // no node counts any more, all have restarted since they voted: the proposal will fail
		return counter
	}
	return max(counter, times[len(times)/2]+ahead-1)
}

// tally is the judge of the round p, which has proposed the token. Where too many nodes refused because of larger counters, the
// election proposes a larger token. With p.mu held.
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
	case accepted >= s.majority:
		return true, func() { e.done(scripts.Answer{Held: true, Token: token}, nil) }
	case accepted+open >= s.majority:
		return false, nil
	case open > 0:
		return false, nil // a node that has not answered may have a larger counter
	case accepted+refused >= s.majority && e.proposals < maxProposals:
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
	err := s.majorityError(p, good)
	return true, func() { e.done(scripts.Answer{}, s.withEarlierRound(err, &e.votes, p, good)) }
}
