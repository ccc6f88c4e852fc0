package tokens

import (
	"cmp"
	"fmt"
	"strings"
)

// State is all that there is at one moment. It holds bytes only, so that it is compared and hashed as it lies in memory.
type State struct {
	now               uint8 // the true time
	restarts, flushes uint8 // so many may still come
	repeats, others   uint8 // so many may still come
	nodes             [nodes]Node
	attempts          [attempts]Attempt
}

// Node is one server, and what the clients have heard of it.
type Node struct {
	holder  uint8 // the attempt that has the lock here, and 1
	counter uint8 // 0: it has none
	young   uint8 // from this tick on it counts again; 0: it counts
	skew    uint8 // its clock is that far ahead of one that is Bounds.Skew behind
	wrong   bool  // its clock says anything
	of      [attempts]Dealings
}

// Dealings are what passed between a node and the client of an attempt.
type Dealings struct {
	copies   uint8 // so often the command that takes the lock came to the node
	heard    uint8 // the time that the node told with its vote; 0: the client has no vote of it that counts
	took     uint8 // the proposal that the node said it took: 1, 2, or 0 for none
	yes      bool  // the client knows that it has a vote, and may propose a token to it
	proposed bool  // the proposal of the second round came to the node
}

// Phase is how far an attempt is. An attempt that gives up remains where it is: it has no token, and of two attempts
// of which one has none there is nothing to say.
type Phase uint8

const (
	waits    Phase = iota // has not begun
	asks                  // first round
	proposes              // second round
	complete
)

// Attempt is an acquire, as its client sees it. A number is chosen when a node takes it: until then it is 0, and may be any.
type Attempt struct {
	phase      Phase
	until      uint8 // it takes no longer than to the end of this tick
	least      uint8 // its token has to be larger than this
	done       uint8 // its token, once it is complete: of a block the last one,
	begins     uint8 // and the first one
	more       uint8 // p1 and p2 are the last of a block: so many tokens come before each
	p1, p2     uint8 // its proposals in the first round
	largest    uint8 // the largest counter that it was told
	none       bool  // a voter had no counter
	token      uint8 // its proposal in the second round
	accepted   uint8 // so many nodes accepted that, and count
	proposals  uint8 // so often it has proposed in the second round
	wrongClock bool  // its client's clock says anything
}

// canonical returns the state with its nodes in order. Nodes differ only in what they have: which of them has it makes no
// difference to what can happen. Nor do the proposals of a first round that is over, when all its commands have come.
func (s State) canonical() State {
	for i := range s.attempts {
		if a := &s.attempts[i]; a.phase > asks && !s.mayCome(0, i) && !s.mayCome(1, i) && !s.mayCome(2, i) {
			a.p1, a.p2 = 0, 0
		}
	}
	n := &s.nodes
	for _, p := range [...][2]int{{0, 1}, {1, 2}, {0, 1}} {
		if n[p[1]].compare(&n[p[0]]) < 0 {
			n[p[0]], n[p[1]] = n[p[1]], n[p[0]]
		}
	}
	return s
}

// mayCome says whether the command of attempt i that takes the lock may still come to node n.
func (s *State) mayCome(n, i int) bool {
	copies := s.nodes[n].of[i].copies
	return copies == 0 || copies == 1 && s.repeats > 0
}

// compare orders nodes, in any way, as long as only equal ones are equal.
func (n *Node) compare(o *Node) int {
	x, y := n.order(), o.order()
	for i := range x {
		if x[i] != y[i] {
			return cmp.Compare(x[i], y[i])
		}
	}
	return 0
}

func (n *Node) order() [2]uint64 {
	d, e := &n.of[0], &n.of[1]
	return [2]uint64{
		uint64(n.holder) | uint64(n.counter)<<8 | uint64(n.young)<<16 | uint64(n.skew)<<24 | bit(n.wrong)<<32,
		uint64(d.copies) | uint64(d.heard)<<8 | uint64(d.took)<<16 | bit(d.proposed)<<24 | bit(d.yes)<<25 |
			uint64(e.copies)<<32 | uint64(e.heard)<<40 | uint64(e.took)<<48 | bit(e.proposed)<<56 | bit(e.yes)<<57,
	}
}

func bit(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

// String tells the state in one line.
func (s State) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "time %d", s.now)
	for i := range s.nodes {
		n := &s.nodes[i]
		fmt.Fprintf(&b, " | %c:", 'A'+i)
		if n.wrong {
			b.WriteString(" wrong")
		} else if n.skew > 0 {
			fmt.Fprintf(&b, " skew %d", n.skew)
		}
		fmt.Fprintf(&b, " counter %d", n.counter)
		if n.holder > 0 {
			fmt.Fprintf(&b, " for %c", 'X'+n.holder-1)
		}
		if n.young > 0 {
			fmt.Fprintf(&b, " young until %d", n.young)
		}
		for j, d := range n.of {
			if d.heard > 0 {
				fmt.Fprintf(&b, ", told %c %d", 'X'+j, d.heard)
			}
			if d.took > 0 {
				fmt.Fprintf(&b, " and took p%d", d.took)
			}
		}
	}
	for i := range s.attempts {
		a := &s.attempts[i]
		fmt.Fprintf(&b, " | %c ", 'X'+i)
		if a.wrongClock {
			b.WriteString("with a wrong clock ")
		}
		switch a.phase {
		case waits:
			b.WriteString("waits")
		case asks:
			fmt.Fprintf(&b, "asks, p1 %d p2 %d", a.p1, a.p2)
		case proposes:
			fmt.Fprintf(&b, "proposes %d, accepted by %d", a.token, a.accepted)
		case complete:
			fmt.Fprintf(&b, "has tokens %d to %d", a.begins, a.done)
		}
	}
	return b.String()
}
