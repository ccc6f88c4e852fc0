package quorum

import (
	"sync"
	"time"

	"github.com/fencelock/fencelock/scripts"
)

// A round asks several nodes the same at once, and is over as soon as its outcome is decided: it does not wait for the
// slowest. What is answered later is heard all the same.
type round struct {
	op    func() scripts.Op
	heard func(*ask)                                // of each ask, once, when its outcome is known; with mu held
	judge func(final bool) (over bool, then func()) // with mu held, until over; final: there will be no more answers in time

	mu    sync.Mutex
	asks  []*ask // by node; nil for one that is not asked
	open  int    // whose time has not passed
	over  bool
	timer *time.Timer
}

// An ask is the part of a round that one node has.
type ask struct {
	op     scripts.Op
	round  *round
	node   *node
	sent   time.Time
	state  askState
	report *scripts.Report // nil unless answered
	yes    bool
	err    error
}

type askState int8

const (
	pending askState = iota
	silent           // not in time; the answer may come still
	unsent           // taken back, or never sent
	failed           // err in place of an answer
	answered
)

// start asks the nodes, and gives them this time.
func (r *round) start(all, nodes []*node, within time.Duration) {
	r.mu.Lock()
	r.asks = make([]*ask, len(all))
	for _, n := range nodes {
		r.ask(n)
	}
	r.timer = time.AfterFunc(within, r.timeout)
	if r.open == 0 {
		go r.timeout()
	}
	r.mu.Unlock()
}

// add asks one node more, if the round is not over.
func (r *round) add(n *node) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.over && r.asks[n.index] == nil {
		r.ask(n)
	}
}

// widen asks more nodes, and gives them this time. With mu held.
func (r *round) widen(nodes []*node, within time.Duration) {
	for _, n := range nodes {
		r.ask(n)
	}
	r.timer.Reset(within)
}

func (r *round) ask(n *node) {
	a := &ask{op: r.op(), round: r, node: n, sent: time.Now()}
	r.asks[n.index] = a
	if n.send(a) {
		r.open++
		return
	}
	a.state, a.err = unsent, errSilent
	r.tell(a)
}

func (r *round) tell(a *ask) {
	if r.heard != nil {
		r.heard(a)
	}
}

// Sending implements scripts.Caller.
func (a *ask) Sending(scripts.Caller) {}

// Answered implements scripts.Caller.
func (a *ask) Answered(answer scripts.Answer, err error) {
	r := a.round
	a.node.said(answer.Report, err, time.Since(a.sent))
	r.mu.Lock()
	if a.state == silent {
		a.node.late()
	} else {
		r.open--
	}
	if a.state, a.err = answered, err; err != nil {
		a.state = failed
	} else {
		a.report, a.yes = answer.Report, answer.Held
	}
	r.tell(a)
	if r.open == 0 && r.timer != nil {
		r.timer.Stop()
	}
	r.settle(r.open == 0)
}

// timeout is the end of the nodes' time.
func (r *round) timeout() {
	r.mu.Lock()
	for _, a := range r.asks {
		if a == nil || a.state != pending {
			continue
		}
		r.open--
		if a.node.scripts.Withdraw(&a.op) {
			a.state, a.err = unsent, errSilent
			r.tell(a)
			continue
		}
		a.state, a.err = silent, errSilent
		a.node.missed()
	}
	r.settle(true)
}

// settle sees whether the outcome is decided. It gives r.mu back.
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

// all returns the asks that were made.
func (r *round) all(yield func(*ask) bool) {
	for _, a := range r.asks {
		if a != nil && !yield(a) {
			return
		}
	}
}
