package quorum

import (
	"github.com/fencelock/fencelock/scripts"
)

// A release gives up one hold, or an attempt, on the nodes that have its field or may have it. On the home of the lock it calls the first
// client in the line, also where the home has not got the field.
type release struct {
	*store
	order   scripts.Order
	rec     *fieldRecord // nil: somebody else's field, as for a ForceUnlock
	home    *node
	counter int64          // the largest token that is known
	final   map[*node]bool // the nodes with no vote under way: their field does not come back after this release
	asks    round
	late    bool // the home is slow, and is not waited for; guarded by asks.mu
	done    func(scripts.Answer, error)
}

// release removes the field from the nodes that have it or may have it, and a field of another client, as for a ForceUnlock, from
// all nodes. done gets Held if the hold had a majority to the end, and Owed if the release is to be sent
// again (P3): some node may still have the field, or take it late.
func (s *store) release(o scripts.Order, done func(scripts.Answer, error)) {
	rec, own := s.find(o.Field)
	if rec == nil && own {
		done(scripts.Answer{}, nil) // no release is owed
		return
	}
	lock := o.Keys.Channel()
	r := &release{store: s, order: o, rec: rec, home: s.home(lock), counter: s.counter(lock), done: done}
	to := s.nodes
	if rec != nil {
		if to, r.final = rec.closing(s.nodes, r.home, o.Lined); len(to) == 0 {
			s.drop(o.Field, rec)
			done(scripts.Answer{}, nil)
			return
		}
	}
	r.asks.op, r.asks.heard, r.asks.judge = r.withdraw, r.heard, r.judge
	if r.home != nil {
		_, slow := s.far()
		r.asks.hedge, r.asks.slow = slow, func() { r.late = true }
	}
	r.asks.start(s.nodes, to, s.within(0))
}

// withdraw makes the question for one node. A hold's own client names the field to the one that it calls: it has given the field up on all nodes
// (P40).
func (r *release) withdraw(n *node) scripts.Op {
	o := r.order
	op := scripts.Withdraw(o.Keys, o.Field, r.rec == nil || !r.rec.isSilent())
	switch {
	case !o.Lined || r.rec != nil && r.rec.isSilent():
		return op
	case r.rec == nil || o.Known < 0:
		return op.CallingInLine("", scripts.NotTheHolder, 0)
	case n == r.home && !o.Newcomers:
		return op.CallingInLine(o.Turn.Ticket, o.Known, r.counter)
	}
	return op.CallingNewcomersInLine(r.counter)
}

// heard notes the outcome of one node.
func (r *release) heard(a *ask) {
	switch {
	case r.rec == nil:
	case r.final[a.node] && (a.state == answered || a.state == failed && !scripts.Passing(a.err)):
		r.rec.heard(a.node, a.state == answered)
	case !r.final[a.node] && a.state == answered && r.rec.heardEarly(a.node, a.yes):
		r.releaseAgain(a.node, r.rec, r.order.Keys, r.order.Field)
	}
}

// releaseAgain releases a field that a node has taken by a vote that came behind the release, on this node alone: the release may be under way to others.
func (s *store) releaseAgain(n *node, rec *fieldRecord, keys *scripts.Keys, field string) {
	op := scripts.Withdraw(keys, field, !rec.isSilent())
	if n == s.home(keys.Channel()) && !rec.isSilent() {
		op = op.CallingInLine("", scripts.NotTheHolder, 0)
	}
	go s.askOne(n, op, func(_ scripts.Answer, err error) {
		if err == nil {
			rec.heard(n, true)
		}
	})
}

// A released is what the answers of members to a release say.
type released struct {
	open      int // nodes without an outcome
	unknown   int // nodes that have not answered
	did       int // nodes that have removed the field
	removed   int // nodes where somebody else has removed it
	restarted int // nodes that have restarted since they had it
	strangers int // nodes that are no members, and have not answered
}

// tally counts the answers.
func (r *release) tally(final bool) (t released) {
	for a := range r.asks.all {
		switch {
		case a.node.stranded() != nil:
			if a.state != answered {
				t.strangers++
			}
		case a.state == pending && !final:
			t.open++
		case a.state != answered:
			t.unknown++
		case a.yes:
			t.did++
		case r.rec != nil && r.rec.restarted(a), r.rec == nil && !counts(a):
			t.restarted++
		case r.rec != nil && r.rec.removed(a) && a.answer.Copies > 0: // of the release: one may have removed it, without an answer
			t.did++
		case r.rec != nil && r.rec.removed(a):
			t.removed++
		}
	}
	return t
}

// judge is the judge of the answers.
func (r *release) judge(final bool) (over bool, then func()) {
	if a := r.homeAsk(); a != nil && a.state == pending && !final && !r.late {
		return false, nil // who is called is known with its answer
	}
	t := r.tally(final)
	all, here := r.sizes()
	if r.rec == nil {
		all = here // others may have got somebody else's field
	}
	free := all - t.open - t.unknown // the members that certainly have not got the field now
	clear := t.did >= r.majority() || r.rec != nil && t.removed == 0 && t.restarted == 0 && free >= r.majority()
	switch {
	case t.open > 0 && !clear:
		return false, nil
	case free < r.majority():
		err := r.tooFew()
		return true, func() { r.done(scripts.Answer{Owed: r.rec == nil || r.rec.owed()}, err) }
	}
	return true, func() { r.succeeded(t) }
}

// homeAsk is what the home was asked; nil for nothing. With asks.mu held.
func (r *release) homeAsk() *ask {
	if r.home == nil {
		return nil
	}
	return r.asks.asks[r.home.index]
}

// tooFew is the error of a release that too few nodes have confirmed. With asks.mu held.
func (r *release) tooFew() *MajorityError {
	err := r.majorityError(&r.asks, func(a *ask) bool { return a.state == answered })
	for i, n := range r.nodes { // some were not asked, as they have not got the field, and may be away all the same
		if why := n.lastTrouble(); r.asks.asks[i] == nil && why != nil {
			err.Failed = append(err.Failed, &NodeError{Node: n.name, Err: why, unasked: true})
		}
	}
	return err
}

// succeeded ends a release by which the lock is free. The hold lasted to the end if others could not have had a majority. A node that has
// restarted does not count for them. Where somebody else has released the field on one node, the nodes without an answer may have lost it too.
func (r *release) succeeded(t released) {
	all, _ := r.sizes()
	others := all - t.did - t.open - t.unknown - t.restarted
	if t.removed > 0 {
		others += t.open + t.unknown
	}
	answer := scripts.Answer{
		Held:    others < r.majority() && (r.rec != nil || t.did > 0), // of two calls that force a lock open at the same moment, one gets Held, if all nodes answer
		Owed:    t.open+t.unknown+t.strangers > 0,
		Unheard: t.unknown > 0,
	}
	r.asks.mu.Lock()
	for a := range r.asks.all {
		if a.state != answered {
			continue
		}
		if a.yes {
			answer.Receivers, answer.Untold = max(answer.Receivers, a.report.Receivers), answer.Untold || a.report.Receivers < 0
		}
		answer.Outside = max(answer.Outside, a.answer.Outside)
		answer.More = answer.More || a.answer.More
		answer.Score = max(answer.Score, a.answer.Score)
	}
	r.asks.mu.Unlock()
	if r.rec != nil {
		answer.Owed, answer.Unheard = r.drop(r.order.Field, r.rec), r.rec.waits()
	}
	if r.rec != nil && r.order.Lined && r.order.Known >= 0 && t.open > 0 {
		r.note(r.order.Keys.Channel(), func(l *seen) { l.gone = r.order.Field })
	}
	r.done(answer, nil)
}

// leave takes a ticket out of the line, and calls the first client there. done is called once.
func (s *store) leave(o scripts.Order, done func(scripts.Answer, error)) {
	n := s.seen(o.Keys.Channel()).lined
	if n == nil {
		n = s.homeOrFirst(o.Keys)
	}
	s.leaveOn(n, o, done)
}

// leaveOn is leave for a ticket that is in the line on this node.
func (s *store) leaveOn(n *node, o scripts.Order, done func(scripts.Answer, error)) {
	s.askOne(n, scripts.LeaveNode(o.Keys, o.Turn.Ticket), done)
}

// askOne asks one node.
func (s *store) askOne(n *node, op scripts.Op, done func(scripts.Answer, error)) {
	r := &round{op: func(*node) scripts.Op { return op }}
	r.judge = func(bool) (bool, func()) {
		answer, err := r.asks[n.index].answer, r.asks[n.index].err // here: one that comes late changes them
		return true, func() { done(answer, err) }
	}
	r.start(s.nodes, []*node{n}, s.within(0))
}
