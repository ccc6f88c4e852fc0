package quorum

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"github.com/fencelock/fencelock/scripts"
)

// An attempt is one acquire. It asks a majority of the nodes, and more where one of these refuses, fails or is slow. Where the client waits in
// the line of the lock's home, and was not called, the attempt asks the home alone at first.
type attempt struct {
	election
	rec   *fieldRecord
	lease time.Duration // on the nodes
	home  *node         // the first in the order of the nodes, the same for all clients; nil where too few nodes are there
	told  func(scripts.Answer, error)

	gone   string           // the field of a hold that was given up, and whose release may not have come to all nodes; "" for none
	offer  scripts.Proposal // what the nodes may accept with their votes; zero where there is none,
	offers int              // and how many tokens in a row
	before seen             // what the client knew of the lock when the attempt began

	strangers bool // there were nodes then of which the client had not heard

	// Guarded by votes.mu.
	left []*node // that were not asked, in their order
	late bool    // a node that was asked is slow, and all were asked
	hold bool    // the attempt has become a hold
}

// acquire takes the lock on a majority of the nodes, and a token where the order asks for one. done is called once: with Held, or with the
// time after which to look again, or with an error.
func (s *store) acquire(o scripts.Order, done func(scripts.Answer, error)) {
	lease, lock := o.Lease+extraLease, o.Keys.Channel()
	at := &attempt{rec: s.field(o.Field, lease), lease: lease, told: done}
	at.election = election{store: s, order: o, enough: 1, done: at.over, lost: at.forcedOpen, more: at.more}
	s.noteCounter(lock, o.Turn.Counter)
	at.before = s.seen(lock)
	at.gone = cmp.Or(o.Turn.Gone, at.before.gone)
	if o.Fenced {
		at.offer, at.offers = s.proposal(lock, o.Expiry, o.Tokens)
		at.election.first = at.offer.First
	}
	at.votes.op, at.votes.heard, at.votes.judge = at.vote, at.voted, at.judge
	order, home, hedge := s.sortedFor(lock)
	if o.Within > 0 {
		at.until = time.Now().Add(o.Within - o.Within/50)
		hedge = min(hedge, o.Within/3)
	}
	at.home, at.hedgeAfter = home, hedge
	ask := s.majority()
	at.strangers = slices.ContainsFunc(s.nodes, (*node).stranger)
	switch {
	case home != nil && !o.Turn.Called && (o.Turn.Ticket != "" || o.Turn.Look || at.before.refused || at.strangers && !s.asksAll):
		ask = 1
	case home == nil || s.asksAll:
		ask = len(order)
	}
	if home != nil && o.Turn.Ticket != "" {
		if before := s.enters(lock, home); before != nil {
			s.leaveOn(before, o, func(scripts.Answer, error) {})
		}
	}
	ask = min(ask, len(order))
	at.left = slices.Clone(order[ask:])
	if home != nil {
		at.votes.slow, at.votes.hedge = at.hedge, hedge
	}
	if !at.rec.voting(order[:ask], lease) {
		done(scripts.Answer{}, errors.New("quorum: the field of a hold was used again"))
		return
	}
	at.votes.start(s.nodes, order[:ask], at.within())
	s.probe(order[ask:], o.Keys, at.strangers)
}

// vote makes the question for one node. The home has the line.
func (at *attempt) vote(n *node) scripts.Op {
	vote := scripts.Vote(at.order.Keys, at.order.Field, at.lease)
	if at.offers > 0 {
		vote = vote.Proposing(at.offer).TakingTokens(at.offers)
	}
	if n == at.home && at.order.Lined {
		return vote.InLine(at.order.Turn)
	}
	return vote.Dropping(at.gone)
}

// voted notes the outcome of a vote, also of one that comes when the attempt is over.
func (at *attempt) voted(a *ask) {
	if at.rec.voted(a, at.lease) {
		at.store.releaseAgain(a.node, at.rec, at.order.Keys, at.order.Field)
	}
	if at.hold && a.node == at.home && a.state == answered && !a.yes {
		at.leaveHome()
	}
	if a.state == answered && a.report.Counter > at.offer.Token {
		at.store.noteCounter(at.order.Keys.Channel(), a.report.Counter)
	}
	at.votedLate(a)
}

// judge is the judge of the votes. The home's no ends the attempt: who has the home comes first, and gets the other nodes. But the home may have a
// hold that nobody else has, of a client that is gone: see homeDecides. Any other node's no, or an error, has one more node asked, when the home has
// said yes, or has failed, or is slow.
func (at *attempt) judge(final bool) (over bool, then func()) {
	s := at.store
	if a := at.homeAsk(); a != nil {
		switch {
		case at.homeRefused() && at.homeDecides(a):
			return true, func() { at.refusedAtHome(a.answer) }
		case a.state == pending && !final && !at.late:
			return false, nil
		case a.state == answered && !a.yes && !at.order.Turn.Quiet && at.votes.open > 0 && !final && !at.late:
			return false, nil // those that were asked with it may make it one of a majority
		}
	}
	yes, open := at.count(final)
	owner := at.owner()
	if owner != nil {
		at.followOwner(owner)
	}
	if !at.order.Lined && at.homeRefused() && owner == nil && yes < s.majority() && at.before.splits == 0 && !at.alone() {
		if open > 0 && !at.late {
			return false, nil
		}
		return true, at.undecided
	}
	if missing := s.majority() - yes - open; missing > 0 && owner == nil && len(at.left) > 0 && !at.isOver() {
		if !at.widen(missing) { // the call has ended meanwhile, and its release is under way
			return true, at.giveUp
		}
		if at.votes.open > 0 {
			return false, nil
		}
		yes, open = at.count(true)
	}
	if yes >= s.majority() && at.unheard() {
		return false, nil
	}
	if yes < s.majority() && (yes+open >= s.majority() || open > 0 && owner == nil) {
		return false, nil // more answers may make a majority, or show an owner
	}
	switch err := s.checkDistinct(&at.votes); {
	case err != nil:
		return true, func() { at.failed(scripts.Answer{}, err) }
	case yes < s.majority() && at.homeRefused() && (owner != nil || at.order.Lined) && at.counting() >= s.majority():
		answer := at.homeAsk().answer
		return true, func() { at.refusedAtHome(answer) }
	case yes < s.majority():
		answer, err := at.refused(owner)
		return true, func() { at.failed(answer, err) }
	case !at.order.Fenced:
		return true, func() { at.over(scripts.Answer{Held: true}, nil) }
	}
	if token := at.accepted(); token > 0 {
		return true, func() { at.over(scripts.Answer{Held: true, Token: token, Tokens: at.offers}, nil) }
	}
	return true, at.propose
}

// unheard tells whether a node that this client has not heard of may still say who the members are, as none has said so far: of other nodes than the members the
// votes are worth nothing. It asks those that were not asked. With votes.mu held.
func (at *attempt) unheard() bool {
	if at.store.newest.Load() != nil || !slices.ContainsFunc(at.store.nodes, (*node).stranger) {
		return false
	}
	at.widen(len(at.left))
	return at.votes.open > 0
}

// homeDecides tells whether the no that the home has answered ends the attempt. It does not where the hold that the home has may be one that no
// majority has: that of an attempt under way, or of a program that ended before it was released everywhere. A call that does not wait, and is in no line, asks a
// majority, and, where this shows no owner, all nodes with its next attempt. A client that looks asks the others, unless it has seen the hold on a majority.
// With votes.mu held.
func (at *attempt) homeDecides(a *ask) bool {
	t, holder := at.order.Turn, a.report.Holder
	switch {
	case t.Quiet, !at.order.Lined && holder != at.before.owner:
		return false
	case holder == "": // it is another client's turn
		return true
	}
	return holder != at.before.remnant && (!t.Look || holder == at.before.owner)
}

// homeAsk is what home was asked; nil for nothing. With votes.mu held.
func (at *attempt) homeAsk() *ask {
	if at.home == nil {
		return nil
	}
	return at.votes.asks[at.home.index]
}

// homeRefused tells whether home has refused. A home that has the line tells no run as it refuses. It is believed then if it has told its run
// lately, or if others make a majority with it, so that a home which has restarted meanwhile is not taken at its word. A client in the line,
// and one that has not heard of it before, believe it, and ask the others when they look. With votes.mu held.
func (at *attempt) homeRefused() bool {
	a := at.homeAsk()
	if a == nil || a.state != answered || a.yes {
		return false
	}
	return a.report.Run != "" || at.order.Turn.Ticket != "" || a.first || a.node.toldLately() || at.counting() >= at.store.majority()
}

// widen asks so many nodes more; false where the field is being released, and no node may be asked. With votes.mu held.
func (at *attempt) widen(n int) bool {
	more := at.left[:min(n, len(at.left))]
	at.left = at.left[len(more):]
	if len(more) == 0 {
		return true
	}
	if !at.rec.voting(more, at.lease) {
		return false
	}
	at.votes.widen(more, at.within())
	return true
}

// hedge asks all other nodes, as one of those that were asked is slow. With votes.mu held.
func (at *attempt) hedge() {
	at.late = true
	at.widen(len(at.left))
}

// more asks all other nodes for their votes, as too few of those that have voted accept the token; false where none is left. begins: the votes
// are judged anew, and the token is proposed anew then. Otherwise it is proposed to who votes now.
func (at *attempt) more(begins bool) bool {
	at.votes.mu.Lock()
	defer at.votes.mu.Unlock()
	if len(at.left) == 0 || !at.widen(len(at.left)) {
		return false
	}
	at.votes.over = at.votes.over && !begins
	return true
}

// giveUp ends an attempt whose call has ended.
func (at *attempt) giveUp() {
	at.tell(scripts.Answer{Owed: at.store.drop(at.order.Field, at.rec)}, nil)
}

// undecided ends an attempt that the home has refused for a hold that has not been seen on a majority.
func (at *attempt) undecided() {
	at.failed(scripts.Answer{TTL: at.store.split(at.order.Keys.Channel()), Why: ErrSplitVote}, nil)
}

// refusedAtHome ends an attempt that the home has refused, with this answer.
func (at *attempt) refusedAtHome(answer scripts.Answer) {
	if !at.before.refused {
		at.store.note(at.order.Keys.Channel(), func(l *seen) { l.refused = true })
	}
	at.told(scripts.Answer{
		TTL: answer.TTL, Before: answer.Before, Score: answer.Score, Head: answer.Head, Outside: answer.Outside,
		Owed: at.store.drop(at.order.Field, at.rec),
	}, nil)
}

// failed ends an attempt that has no majority, as the client sees it. Whoever is called next would fail too: the release of the attempt
// calls nobody, and the client asks again after a while.
func (at *attempt) failed(answer scripts.Answer, err error) {
	at.rec.silence()
	answer.Owed = at.store.drop(at.order.Field, at.rec)
	if m, tooFew := err.(*MajorityError); tooFew {
		m.nothing = !answer.Owed
		m.addUnasked(at.store.nodes, &at.votes)
		if !at.until.IsZero() { // what the home alone says next is no answer
			at.store.note(at.order.Keys.Channel(), func(l *seen) { l.splits = max(l.splits, 1) })
		}
	}
	at.tell(answer, err)
}

// over ends an attempt that had a majority.
func (at *attempt) over(answer scripts.Answer, err error) {
	if !answer.Held {
		at.rec.fail()
		answer.Owed = true
		at.tell(answer, err)
		return
	}
	remnant := at.won()
	at.store.note(at.order.Keys.Channel(), func(l *seen) {
		l.splits, l.refused, l.remnant = 0, false, remnant
		if answer.Token >= at.offer.Token {
			l.counter = max(l.counter, answer.Token)
		}
	})
	at.rec.win(at.spread, at.order.Lease > 3*spreadAfter)
	if at.strangers && !at.before.refused && at.order.Turn.Ticket == "" { // nobody else seems to begin at this moment
		at.store.probe(at.store.nodes, at.order.Keys, false)
	}
	at.tell(answer, nil)
}

// won notes that the attempt has become a hold, and returns the field of another hold that the home has; "" for none. Where the home has refused, the
// client's ticket is in the line there.
func (at *attempt) won() (remnant string) {
	at.votes.mu.Lock()
	defer at.votes.mu.Unlock()
	at.hold = true
	if a := at.homeAsk(); a != nil && a.state == answered && !a.yes {
		remnant = a.report.Holder
		at.leaveHome()
	}
	return remnant
}

// leaveHome takes the ticket of an attempt that has the lock out of the home's line, where nobody waits with it any more. With votes.mu held.
func (at *attempt) leaveHome() {
	if at.order.Turn.Ticket != "" {
		go at.store.leaveOn(at.home, at.order, func(scripts.Answer, error) {})
	}
}

// tell tells the outcome, which does not say where the client is in the line.
func (at *attempt) tell(answer scripts.Answer, err error) {
	answer.Before = scripts.NotInLine
	at.votes.mu.Lock()
	a := at.homeAsk()
	if a != nil {
		answer.Outside = a.answer.Outside
	}
	at.votes.mu.Unlock()
	at.told(answer, err)
}

// forcedOpen ends an attempt that had a majority, and was forced open before it had its token.
func (at *attempt) forcedOpen() {
	if !at.until.IsZero() {
		at.over(scripts.Answer{}, errForcedOpen)
		return
	}
	at.over(scripts.Answer{TTL: at.store.split(at.order.Keys.Channel()), Why: ErrSplitVote}, nil)
}

// spread takes the lock for a hold, which has lasted for a while, on the nodes that were not asked for their votes. It is a renewal: the hold
// may have been forced open meanwhile.
func (at *attempt) spread() {
	at.votes.mu.Lock()
	left := at.left
	at.left = nil
	at.votes.mu.Unlock()
	if len(left) == 0 || at.store.isClosed() {
		return
	}
	asked := slices.DeleteFunc(slices.Clone(at.store.nodes), func(n *node) bool { return slices.Contains(left, n) })
	at.store.extendOn(asked, left, at.order.Keys, at.order.Field, at.order.Lease, func(error) {})
}

// count returns how many of the nodes that count have voted yes, and how many nodes may still answer in time.
func (at *attempt) count(final bool) (yes, open int) {
	for a := range at.votes.all {
		switch {
		case a.state == pending && !final:
			open++
		case a.yes && counts(a):
			yes++
		}
	}
	return yes, open
}

// accepted returns the token that a majority has accepted with its votes, 0 for none. Who has accepted the proposal for nodes with a counter,
// and who has accepted the other one, are counted apart: they have not accepted the same token.
func (at *attempt) accepted() int64 {
	var token, first int
	for a := range at.votes.all {
		switch {
		case !counts(a) || !a.report.Took:
		case a.report.Counter == at.offer.Token:
			token++
		case a.report.Counter == at.offer.First:
			first++
		}
	}
	switch {
	case token >= at.store.majority():
		return at.offer.Token
	case first >= at.store.majority():
		return at.offer.First
	}
	return 0
}

// counts is counts, but that a home which has refused without telling its run counts too. With votes.mu held.
func (at *attempt) counts(a *ask) bool {
	return counts(a) || at.order.Lined && a.node == at.home && a.state == answered && !a.yes && a.report.Run == ""
}

// counting returns how many nodes that count have answered. With votes.mu held.
func (at *attempt) counting() (n int) {
	for a := range at.votes.all {
		if at.counts(a) {
			n++
		}
	}
	return n
}

// owner returns the share of another hold that has the lock on a majority; nil if no answer shows one, or if no majority counts: then what nodes
// have is of attempts like this one. What this client has given up, and not released everywhere yet, is no owner's either. With votes.mu held.
func (at *attempt) owner() *share {
	if at.counting() < at.store.majority() {
		return nil
	}
	all := shares(&at.votes)
	if len(all) > 0 && all[0].field != at.order.Field && len(all[0].ttls) >= at.store.majority() && !at.store.givenUp(all[0].field) {
		return all[0]
	}
	return nil
}

// alone tells whether no answer names another client's hold, to a call that does not wait: what nodes have is left of earlier attempts of this client, whose
// votes or releases come late. With votes.mu held.
func (at *attempt) alone() bool {
	if at.until.IsZero() {
		return false
	}
	for a := range at.votes.all {
		if a.state == answered && !a.yes && !at.store.givenUp(a.report.Holder) {
			return false
		}
	}
	return true
}

// followOwner notes the owner, and takes a node that the owner has for the home, if the home says that the owner has not got it: the owner's release
// calls there.
func (at *attempt) followOwner(owner *share) {
	if owner.field != at.before.owner {
		at.before.owner = owner.field
		at.store.note(at.order.Keys.Channel(), func(l *seen) { l.owner = owner.field })
	}
	if a := at.homeAsk(); a == nil || a.state != answered || a.report.Holder == owner.field {
		return
	}
	s, lock := at.store, at.order.Keys.Channel()
	start := s.startOf(lock)
	for i := range s.sorted { // in the lock's order, as other clients do
		n := s.sorted[(start+i)%len(s.sorted)]
		if a := at.votes.asks[n.index]; a != nil && a.state == answered && a.report.Holder == owner.field {
			s.note(lock, func(l *seen) { l.owned, l.until = n, time.Now().Add(ownersHome) })
			return
		}
	}
}

// refused returns why an attempt got no majority: another hold is the owner, or the votes are split among several attempts, or
// too few nodes count. Only the last of these is an error.
func (at *attempt) refused(owner *share) (scripts.Answer, error) {
	s := at.store
	if owner != nil {
		members, _ := s.sizes()
		return scripts.Answer{TTL: owner.lasts(members - s.majority() + 1)}, nil
	}
	if at.counting() < s.majority() {
		return scripts.Answer{}, s.majorityError(&at.votes, at.counts)
	}
	if at.alone() {
		return scripts.Answer{}, s.majorityError(&at.votes, saidYes)
	}
	return scripts.Answer{TTL: s.split(at.order.Keys.Channel()), Why: ErrSplitVote}, nil
}
