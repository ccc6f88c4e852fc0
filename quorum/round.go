package quorum

import (
	"sync"
	"time"

	"github.com/fencelock/fencelock/scripts"
)

// A round asks several nodes the same question at once, and is over as soon as the answers decide its outcome: it does not wait
// for the slowest node. heard gets the answers that come later too.
type round struct {
	op     func(*node) scripts.Op // makes the question for one node
	repeat bool                   // it may be asked twice: where a connection had ended it is sent again, on the next one
	// heard is called once for each ask, when its outcome is known, with mu held. It may be nil.
	heard func(*ask)
	// judge is called after each outcome until it returns over, with mu held. final: no more answers will come in time. The
	// func that it returns, unless nil, is called without mu.
	judge func(final bool) (over bool, then func())
	// slow is called once, unless nil, when the round is not over after the time hedge, with mu held. judge is called after that.
	slow  func()
	hedge time.Duration

	mu     sync.Mutex
	asks   []*ask // by the node's index; nil for a node that is not asked
	open   int    // asks that have neither an answer nor used up their time
	over   bool
	timer  *time.Timer
	each   time.Duration // a node's time for its answer
	until  time.Time     // the end of the time for all answers
	slowAt time.Time     // when slow is called
}

// firstTimes is how many times as long as others a node may take for the first answer to this client: the handshakes of a connection come before
// that, maybe beside those of hundreds of clients that begin at the same moment.
const firstTimes = 5

// A span is how long a round waits.
type span struct {
	each time.Duration // for a node's answer, or four times what its answers take
	all  time.Duration // for all answers
}

// An ask is the question of a round to one node, and its outcome.
type ask struct {
	op     scripts.Op
	round  *round
	node   *node
	sent   time.Time
	first  bool // the node has told nothing before: it has more time, for the handshakes of a connection
	tries  int  // how often it was sent again
	state  askState
	answer scripts.Answer
	report *scripts.Report // of the answer; nil unless answered
	yes    bool            // the node has done what it was asked
	err    error           // in place of an answer
}

type askState int8

const (
	pending  askState = iota // sent, and its time has not passed
	silent                   // not answered in time; the answer may still come
	unsent                   // never sent, or taken back before it was
	failed                   // the outcome is an error
	answered                 // the node has answered yes or no
)

// start asks these nodes, a part of all, and gives them this time to answer.
func (r *round) start(all, nodes []*node, within span) {
	r.mu.Lock()
	r.asks = make([]*ask, len(all))
	for _, n := range nodes {
		r.ask(n)
	}
	now := time.Now()
	r.each, r.until, r.slowAt = within.each, now.Add(within.all), now.Add(r.hedge)
	r.timer = time.AfterFunc(r.nextDue().Sub(now), r.timeout)
	if r.open == 0 {
		go r.timeout()
	}
	r.mu.Unlock()
}

// add asks one node more, unless it is asked already or the round is over. The round's time stays as it is.
func (r *round) add(n *node) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.over && r.asks[n.index] == nil {
		r.ask(n)
	}
}

// widen asks more nodes, and gives the round this time from now. With mu held.
func (r *round) widen(nodes []*node, within span) {
	for _, n := range nodes {
		r.ask(n)
	}
	now := time.Now()
	r.until = now.Add(within.all)
	r.timer.Reset(r.nextDue().Sub(now))
}

// ask asks one node. With mu held.
func (r *round) ask(n *node) {
	a := &ask{op: r.op(n), round: r, node: n, sent: time.Now(), first: n.stranger()}
	r.asks[n.index] = a
	if n.send(a) {
		r.open++
		return
	}
	a.state, a.err = unsent, errSilent
	r.tell(a)
}

// tell calls heard for an ask whose outcome is known. With mu held.
func (r *round) tell(a *ask) {
	if r.heard != nil {
		r.heard(a)
	}
}

// Sending implements scripts.Caller.
func (a *ask) Sending(scripts.Caller) {}

// dueOf is the end of the ask's time: the round's time for each node, or four times what the node's answers take, as those of a node that is far away, or of
// which much is asked. With mu held.
func (r *round) dueOf(a *ask) time.Time {
	trip, _ := a.node.near()
	each := max(r.each, 4*trip)
	if a.first {
		each *= firstTimes
	}
	if due := a.sent.Add(each); due.Before(r.until) {
		return due
	}
	return r.until
}

// Answered implements scripts.Caller: it notes the node's answer or error, also one that comes after the round's time.
func (a *ask) Answered(answer scripts.Answer, err error) {
	r := a.round
	if r.repeat && err != nil && a.sendAgain(err) {
		return
	}
	took := time.Since(a.sent)
	r.mu.Lock()
	late := a.state == silent
	r.mu.Unlock() // the node comes before the round's own: what judges asks it
	a.node.noteOutcome(answer.Report, err, took, late)
	r.mu.Lock()
	if a.state == silent {
		a.node.late()
	} else {
		r.open--
	}
	if a.state, a.err = answered, err; err != nil {
		a.state = failed
	} else {
		a.answer, a.report, a.yes = answer, answer.Report, answer.Held
	}
	r.tell(a)
	if r.open == 0 && r.timer != nil {
		r.timer.Stop()
	}
	r.settle(r.open == 0)
}

// sendAgain sends the ask again if err is of a connection that had ended, and the round's time is not over.
func (a *ask) sendAgain(err error) bool {
	r := a.round
	r.mu.Lock()
	defer r.mu.Unlock()
	if a.tries++; a.state != pending || r.over || !a.node.scripts.SendAgain(err, a.tries) {
		return false
	}
	a.op = r.op(a.node)
	a.node.scripts.Send(&a.op, a)
	return true
}

// timeout calls slow when that is due, and ends the time of nodes. An ask that has not been sent by then is taken back; an ask that was sent is silent. As long
// as asks have time left the timer calls timeout again.
func (r *round) timeout() {
	r.mu.Lock()
	now := time.Now()
	for _, a := range r.asks {
		if a == nil || a.state != pending || now.Before(r.dueOf(a)) {
			continue
		}
		r.open--
		if a.node.scripts.TakeBack(&a.op) {
			a.state, a.err = unsent, errSilent
			r.tell(a)
			continue
		}
		a.state, a.err = silent, errSilent
		a.node.missed()
	}
	if slow := r.slow; slow != nil && r.open > 0 && !now.Before(r.slowAt) {
		r.slow = nil
		if !r.over {
			slow()
		}
	}
	if r.open > 0 {
		r.timer.Reset(max(r.nextDue().Sub(now), time.Millisecond))
	}
	r.settle(r.open == 0)
}

// nextDue returns when timeout has something to do next. With mu held.
func (r *round) nextDue() time.Time {
	next := r.until
	if r.slow != nil && r.slowAt.Before(next) {
		next = r.slowAt
	}
	for _, a := range r.asks {
		if a == nil || a.state != pending {
			continue
		}
		if due := r.dueOf(a); due.Before(next) {
			next = due
		}
	}
	return next
}

// settle asks judge whether the outcome is decided. With mu held, which settle releases.
func (r *round) settle(final bool) {
	var then func()
	if !r.over {
		r.over, then = r.judge(final)
	}
	r.mu.Unlock()
	if then != nil {
		then()
	}
}

// all iterates over the asks that were made.
func (r *round) all(yield func(*ask) bool) {
	for _, a := range r.asks {
		if a != nil && !yield(a) {
			return
		}
	}
}
