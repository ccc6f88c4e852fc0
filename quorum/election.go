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
	store      *store
	order      scripts.Order
	votes      round
	done       func(scripts.Answer, error)
	lost       func()                 // called in place of done where the hold is gone
	more       func(begins bool) bool // see attempt.more; nil where all nodes are asked anyway
	hedgeAfter time.Duration          // who has not answered after this time is slow
	first      int64                  // what was proposed with the votes to nodes without a counter; 0 for nothing
	until      time.Time              // when the caller leaves, a moment before that; zero where it waits for as long as the rounds take
	enough     int                    // so many nodes must answer a proposal that they have not got the hold, and it is gone

	// Guarded by votes.mu.
	proposal  *round // the latest one; nil before the first
	proposals int    // how many were made
	token     int64  // the latest that was proposed, or a larger counter that a node has told of
	anew      bool   // a node that is to accept it may have no counter
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
	token, anew := e.token, e.anew
	p := &round{op: func(*node) scripts.Op { return scripts.Raise(o.Keys, o.Field, token, anew, o.Expiry) }}
	p.judge = func(final bool) (bool, func()) { return e.tally(p, token, final) }
	if e.more != nil && e.hedgeAfter > 0 {
		p.hedge, p.slow = e.hedgeAfter, func() { go e.more(false) } // not from here: the votes' mutex comes before that of p
	}
	s.noteCounter(o.Keys.Channel(), token) // some node may have accepted it, whatever becomes of it
	e.proposal = p
	p.start(s.nodes, yes, e.within())
	e.votes.mu.Unlock()
}

// within is how long a round of the election that begins now waits.
func (e *election) within() span {
	w := e.store.within(e.order.Lease)
	if !e.until.IsZero() {
		w.all = max(min(w.all, time.Until(e.until)), time.Millisecond)
	}
	return w
}

// isOver tells whether the caller is about to leave.
func (e *election) isOver() bool { return !e.until.IsZero() && !time.Now().Before(e.until) }

// votedLate proposes the token also to a node that votes yes when others were proposed it. A node that had no counter may have forgotten one, and
// is proposed only a token that was made for such nodes. With votes.mu held.
func (e *election) votedLate(a *ask) {
	if e.proposal != nil && a.yes && (e.anew || !e.hadNoCounter(a)) {
		e.proposal.add(a.node)
	}
}

// hadNoCounter tells whether the node had no counter when it voted.
func (e *election) hadNoCounter(a *ask) bool {
	return a.report.Counter == 0 || a.report.Took && a.report.Counter == e.first
}

// floor returns the number that the next token has to exceed, by the answers of the nodes that count: the largest of their
// counters, or their time in microseconds where that is larger, so that tokens grow although a node has forgotten its counter. The
// time is the middle one of the nodes' times: one wrong clock cannot move that beyond the others. Of two clocks nobody knows which
// is right, so the client's own clock is the third. A node without a counter, or one that had none when it voted, may have
// forgotten it a moment ago: then store.ahead is added to the time, which is more than clocks may differ (see the package doc). With votes.mu held.
func (e *election) floor() int64 {
	var times []int64
	var counter int64
	for a := range e.votes.all {
		if !counts(a) {
			continue
		}
		times = append(times, a.report.Time)
		counter = max(counter, a.report.Counter)
		e.anew = e.anew || e.hadNoCounter(a)
	}
	if len(times) == 2 {
		times = append(times, time.Now().UnixMicro())
	}
	slices.Sort(times)
	if len(times) == 0 { // no node counts any more, all have restarted since they voted: the proposal will fail
		return counter
	}
	floor := times[len(times)/2] - 1
	if e.anew {
		floor += e.store.ahead().Microseconds()
	}
	return max(counter, floor)
}

// tally is the judge of the round p, which has proposed the token. Where too many nodes refused because of larger counters, the
// election proposes a larger token. With p.mu held.
func (e *election) tally(p *round, token int64, final bool) (bool, func()) {
	s := e.store
	accepted, refused, gone, open := 0, 0, 0, 0
	var larger int64
	anew := false
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
			larger, anew = max(larger, a.report.Counter), anew || a.report.Counter == 0
		}
	}
	switch {
	case accepted >= s.majority():
		return true, func() { e.done(scripts.Answer{Held: true, Token: token, Tokens: 1}, nil) }
	case accepted+open >= s.majority():
		return false, nil
	case open > 0:
		return false, nil // a node that has not answered may have a larger counter
	case accepted+refused >= s.majority() && e.proposals < maxProposals:
		return true, func() {
			e.votes.mu.Lock()
			e.token, e.anew = max(e.token, larger), e.anew || anew
			e.votes.mu.Unlock()
			e.propose()
		}
	case gone >= e.enough:
		return true, e.lost
	}
	err := s.majorityError(p, saidYes)
	return true, func() {
		if e.more != nil && e.more(true) {
			return
		}
		s.withEarlierRound(err, &e.votes, p, saidYes)
		err.addUnasked(s.nodes, &e.votes)
		e.done(scripts.Answer{}, err)
	}
}
