package handover

import (
	"cmp"
	"fmt"
	"strings"
)

const (
	nodes    = 3
	majority = 2
	attempts = 3 // at most; see Bounds.Attempts
	home     = 0 // the node that has the line
)

// State is all that there is at one moment. It holds bytes only, so that it is compared and hashed as it lies in memory.
type State struct {
	forces, renewals, copies uint8 // so many may still begin, or come
	nodes                    [nodes]Node
	attempts                 [attempts]Attempt
}

// Node is one server, and what passed between the server and the clients.
type Node struct {
	holder  uint8 // the attempt whose field has the lock here, and 1
	counter uint8
	of      [attempts]Dealings
}

// Dealings are what passed between a node and an attempt.
type Dealings struct {
	vote     Vote
	pending  bool     // a yes of the node is under way to the client
	yes      bool     // the client knows that the node had the field
	told     uint8    // the counter that the yes tells
	took     bool     // the node took the number that came with the vote
	proposed bool     // the proposal of the second round came to the node
	accepted bool     // the client knows that the node accepted the proposal
	released Released // what came of the release of the Unlock
	extended Extended // what the node answered to the renewal
	back     bool     // a release of this node alone is under way
	dropped  bool     // the node has dropped the field for a client that was called, and remembers it (NodesTell)
	forced   bool     // a ForceUnlock has removed the field here, and the node has not taken it anew
}

// Vote is the command that takes the lock, on its way to a node.
type Vote uint8

const (
	underWay Vote = iota // it may come at any time, or never
	came
	anew // a second one, of a renewal, is under way
)

// Released is what came of the release of an Unlock at one node.
type Released uint8

const (
	notCome       Released = iota
	unheard                // it came, and the client has no answer
	removed                // it removed the field
	removedCalled          // and called somebody with the field's name
	dropped                // it found that the node had dropped the field for a client that was called (NodesTell)
	gone                   // it found no field
	goneCalled             // and called somebody with the field's name all the same
)

// Extended is what a node answered to a renewal.
type Extended uint8

const (
	noAnswer Extended = iota
	there
	away
)

// Phase is how far an attempt is.
type Phase uint8

const (
	waits    Phase = iota // has not begun
	asks                  // for votes
	won                   // has a majority, and no token yet
	complete              // has its token
	unlocks               // Unlock has begun, and has not said how it went
	over                  // Unlock has ended, or the attempt was given up, or its hold was lost: its releases go on
	settled               // no release is owed any more
)

// Attempt is an acquire with a field of its own, and the hold that it becomes, as its client sees it.
type Attempt struct {
	phase   Phase
	prev    uint8 // the attempt whose field this one drops, and 1
	number  uint8 // that comes with the vote
	largest uint8 // of the counters that came with the votes
	token   uint8 // the proposal of the second round
	done    uint8 // the token, once the acquire is complete
	least   uint8 // the token has to be larger than this
	named   bool  // somebody was called with the name of the field
	force   bool  // a ForceUnlock of the field is under way
	forced  bool  // a ForceUnlock has removed the field on some node
	open    bool  // and then fewer than a majority had the field
	off     bool  // a majority was forced open when Unlock began
	renews  bool  // a renewal is under way
	givenUp bool  // its releases are under way (CountsAfterGiveUp)
}

// believes tells whether the client takes the lock for its own.
func (a *Attempt) believes() bool { return a.phase == won || a.phase == complete }

// isOver tells whether the field was given up, and its owner looks at no answer any more.
func (a *Attempt) isOver() bool { return a.phase >= over }

// has returns how many nodes have the field of attempt i.
func (s *State) has(i int) int {
	n := 0
	for k := range s.nodes {
		n += int(bit(s.nodes[k].holder == uint8(i+1)))
	}
	return n
}

// canonical returns the state with the two nodes that are not the home in order. These differ only in what they have.
func (s State) canonical() State {
	if n := &s.nodes; n[2].compare(&n[1]) < 0 {
		n[1], n[2] = n[2], n[1]
	}
	return s
}

// cleared returns the state without what makes no difference any more.
func (s State) cleared(m *Model) State {
	begun := true
	for i := range m.Attempts {
		begun = begun && s.attempts[i].phase != waits
	}
	for i := range m.Attempts {
		a := &s.attempts[i]
		onWay := false
		for n := range s.nodes {
			d := &s.nodes[n].of[i]
			onWay = onWay || d.vote != came
			switch {
			case a.isOver():
				*d = Dealings{vote: d.vote}
			case a.phase == complete && m.ignores(verdicts) && !m.WithdrawsLate && !m.WithdrawsUnnamed && s.renewals == 0 && !a.renews:
				d.pending, d.yes = false, false
			}
		}
		if a.isOver() { // a release of the owner does all that one of a ForceUnlock does
			*a = Attempt{phase: a.phase, prev: a.prev, number: a.number, done: a.done, named: a.named}
			a.named = a.named && !begun
		}
		if !onWay && s.copies == 0 && (s.renewals == 0 && !a.renews || a.isOver() && !m.AsksAfterUnlock) {
			a.prev = 0
			if a.phase >= complete {
				a.number = 0
			}
		}
	}
	return s
}

// compare orders nodes, in any way, as long as only equal ones are equal.
func (n *Node) compare(o *Node) int {
	if c := cmp.Or(cmp.Compare(n.holder, o.holder), cmp.Compare(n.counter, o.counter)); c != 0 {
		return c
	}
	for i := range n.of {
		if c := cmp.Compare(n.of[i].order(), o.of[i].order()); c != 0 {
			return c
		}
	}
	return 0
}

func (d *Dealings) order() uint64 {
	return uint64(d.vote) | bit(d.pending)<<8 | bit(d.yes)<<9 | bit(d.took)<<10 | bit(d.proposed)<<11 | bit(d.accepted)<<12 | bit(d.back)<<13 |
		bit(d.forced)<<14 | bit(d.dropped)<<15 | uint64(d.told)<<16 | uint64(d.released)<<24 | uint64(d.extended)<<32
}

func bit(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

var phases = [...]string{"waits", "asks", "has a majority", "has the lock", "unlocks", "is over", "is settled"}

// letter is the name of an attempt.
func letter(i int) string { return string(rune('X' + i)) }

// place is the name of a node.
func place(n int) string {
	return [...]string{"the home", "node 1", "node 2"}[n]
}

// String tells the state in one line.
func (s State) String() string {
	var b strings.Builder
	for n := range s.nodes {
		node := &s.nodes[n]
		if n > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%s: ", place(n))
		if node.holder > 0 {
			b.WriteString(letter(int(node.holder) - 1))
		} else {
			b.WriteString("free")
		}
		if node.counter > 0 {
			fmt.Fprintf(&b, " (counter %d)", node.counter)
		}
	}
	for i := range s.attempts {
		a := &s.attempts[i]
		if a.phase == waits {
			continue
		}
		fmt.Fprintf(&b, " | %s %s", letter(i), phases[a.phase])
		if a.prev > 0 {
			fmt.Fprintf(&b, ", called with %s", letter(int(a.prev)-1))
		}
		if a.done > 0 {
			fmt.Fprintf(&b, ", token %d", a.done)
		}
		if a.named {
			b.WriteString(", named")
		}
		if a.forced {
			b.WriteString(", forced")
		}
	}
	return b.String()
}
