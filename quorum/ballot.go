package quorum

import (
	"sync"
	"time"

	"github.com/fencelock/fencelock/scripts"
)

// A ballot is what is known of one field: which nodes have it, or may have it. The release of the hold goes to those, and
// is owed as long as there are any.
type ballot struct {
	mu     sync.Mutex
	began  time.Time // when it was made
	held   bool      // it had the lock
	won    bool      // it had the lock, or may have looked so
	closed bool      // it is being released: no node is to take it any more
	until  time.Time // by then what a node has is over by itself
	marks  []mark    // by node
}

// A mark is what is known of one node.
type mark struct {
	flying int       // votes without an outcome
	has    bool      // the field is there, as far as it said
	doubt  time.Time // until then a vote that got no answer may matter
	run    string    // the node's run when it last said that it has it
}

func (m *mark) owes(now, until time.Time) bool {
	return m.flying > 0 || m.has && now.Before(until) || now.Before(m.doubt)
}

// voting notes that these nodes are about to be asked for their votes; none where the ballot is closed.
func (b *ballot) voting(nodes []*node, lease time.Duration) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return false
	}
	b.lasts(lease)
	for _, n := range nodes {
		b.marks[n.index].flying++
	}
	return true
}

// voted notes the outcome of a vote.
func (b *ballot) voted(a *ask, lease time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	m := &b.marks[a.node.index]
	m.flying--
	switch {
	case a.state == answered && a.yes:
		m.has, m.run = true, a.report.Run
		b.lasts(lease)
	case a.state == failed && scripts.Unanswered(a.err):
		m.doubt = time.Now().Add(lease)
	}
}

// extended notes that a node has the field, for so long.
func (b *ballot) extended(a *ask, lease time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return
	}
	m := &b.marks[a.node.index]
	m.has, m.run = true, a.report.Run
	b.lasts(lease)
}

// lasts notes that a node may have the field for so long. With b.mu held.
func (b *ballot) lasts(lease time.Duration) {
	if until := time.Now().Add(lease); until.After(b.until) {
		b.until = until
	}
}

// removed tells whether the node had the field in this same run, and has not now: somebody has released it there.
func (b *ballot) removed(a *ask) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return a.report.Run != "" && b.marks[a.node.index].run == a.report.Run
}

// forgotten tells whether the node has restarted since it had the field.
func (b *ballot) forgotten(a *ask) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	run := b.marks[a.node.index].run
	return run != "" && run != a.report.Run
}

// owed tells whether some node has the field, or may have it.
func (b *ballot) owed() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.owes()
}

func (b *ballot) owes() bool {
	now := time.Now()
	for i := range b.marks {
		if b.marks[i].owes(now, b.until) {
			return true
		}
	}
	return false
}

// win notes that the hold has the lock.
func (b *ballot) win() {
	b.mu.Lock()
	b.held, b.won = true, true
	b.mu.Unlock()
}

// giveUp notes that the attempt came to nothing. If it has the node that others ask first, it has kept them out.
func (b *ballot) giveUp(first *node) {
	b.mu.Lock()
	b.won = b.won || first != nil && b.marks[first.index].has
	b.mu.Unlock()
}

// closing begins a release: it returns the nodes that it goes to, and whether their answer will be the last word. tell:
// somebody may wait for the lock, because the hold had it, or looked so to others.
func (b *ballot) closing(nodes []*node) (to []*node, final map[*node]bool, tell bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	now := time.Now()
	final = make(map[*node]bool)
	for _, n := range nodes {
		if m := &b.marks[n.index]; m.owes(now, b.until) {
			to = append(to, n)
			final[n] = m.flying == 0
		}
	}
	b.won = b.won || len(to) > len(nodes)/2
	return to, final, b.won
}

// hadIt tells whether the hold had the lock.
func (b *ballot) hadIt() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.held
}

// short tells that no waiter can have seen the hold for long enough to sleep until it is told of the release.
func (b *ballot) short() bool { return time.Since(b.began) < doubtAfter/2 }

// released notes that a node has not got the field any more.
func (b *ballot) released(n *node) {
	b.mu.Lock()
	b.marks[n.index].has = false
	b.mu.Unlock()
}

// expired tells that nothing of it can matter any more.
func (b *ballot) expired(now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range b.marks {
		if m := &b.marks[i]; m.flying > 0 || now.Before(m.doubt) {
			return false
		}
	}
	return now.After(b.until)
}
