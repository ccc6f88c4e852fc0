package tokens

import (
	"fmt"
	"hash/maphash"
)

// Outcome is what a search has found.
type Outcome struct {
	States  int     // so many different states were seen
	Refuted string  // what was found to be wrong; empty: nothing
	Way     []State // how it came to that
	GaveUp  bool    // there are more states than the limit
}

// search goes through all states, depth first.
type search struct {
	*Model
	seed  maphash.Seed
	seen  map[uint64]struct{} // hashes of canonical states
	stack []entry
	way   []State // to the state that is looked at, with that
	out   Outcome
}

type entry struct {
	state State
	depth int // so many states come before it
}

// Search goes through all states of the model, to the first that is wrong. It gives up at the limit.
func (m *Model) Search(limit int) Outcome { return m.search(m.starts(), limit) }

func (m *Model) search(starts []State, limit int) Outcome {
	x := &search{Model: m, seed: maphash.MakeSeed(), seen: make(map[uint64]struct{})}
	for _, s := range starts {
		x.add(s)
	}
	for len(x.stack) > 0 && x.out.Refuted == "" {
		last := len(x.stack) - 1
		e := x.stack[last]
		x.stack = x.stack[:last]
		x.way = append(x.way[:e.depth], e.state)
		if x.out.States == limit {
			x.out.GaveUp = true
			break
		}
		x.out.States++
		x.world(e.state)
		for i := range attempts {
			x.attempt(e.state, i)
		}
	}
	return x.out
}

// add puts a state on the stack, unless it is known.
func (x *search) add(s State) {
	h := maphash.Comparable(x.seed, s.canonical())
	if _, ok := x.seen[h]; !ok {
		x.seen[h] = struct{}{}
		x.stack = append(x.stack, entry{s, len(x.way)})
	}
}

// starts returns how it may begin: the first attempt begins at once, before that there is nothing to forget. It is open which
// clocks are ahead, and which are wrong.
func (m *Model) starts() []State {
	now := m.firstTick()
	s := State{now: uint8(now), restarts: uint8(m.Restarts), flushes: uint8(m.Flushes), repeats: uint8(m.Repeats), others: uint8(m.Others)}
	for i := range s.nodes {
		s.nodes[i].counter = uint8(bit(m.Used))
		s.nodes[i].wrong = m.Wrong > 1
	}
	for i := range s.attempts {
		s.attempts[i].wrongClock = m.Wrong > 1
	}
	s.attempts[0] = Attempt{phase: asks, until: uint8(now + m.Round), wrongClock: m.Wrong > 1}

	all := []State{s}
	if m.Block > 0 { // one attempt may have none
		all = nil
		for with := 1; with < 1<<attempts; with++ {
			t := s
			for i := range t.attempts {
				t.attempts[i].more = uint8(with >> i & 1 * m.Block)
			}
			all = append(all, t)
		}
	}
	if m.Wrong == 1 {
		right := all
		all = nil
		for _, s := range right {
			for i := range nodes {
				t := s
				t.nodes[i].wrong = true
				all = append(all, t)
			}
			for clients := 1; clients < 1<<attempts; clients++ { // both attempts may be of one client
				t := s
				t.attempts[0].wrongClock = clients&1 > 0
				t.attempts[1].wrongClock = clients&2 > 0
				all = append(all, t)
			}
		}
	}
	for i := range nodes {
		if m.Skew == 0 {
			break
		}
		for _, t := range all {
			if !t.nodes[i].wrong {
				t.nodes[i].skew = uint8(2 * m.Skew)
				all = append(all, t)
			}
		}
	}
	return all
}

// world is what happens without a client.
func (x *search) world(s State) {
	onTime := int(s.now) < x.lastTick()
	for _, a := range s.attempts {
		onTime = onTime && (a.phase == waits || a.phase == complete || s.now < a.until)
	}
	if onTime {
		t := s
		t.now++
		for i := range t.nodes {
			if t.nodes[i].young == t.now {
				t.nodes[i].young = 0
			}
		}
		x.add(t)
	}
	if s.others > 0 {
		for i := range nodes {
			x.other(s, i)
		}
	}
	for i, n := range s.nodes {
		if n.counter == 0 && n.holder == 0 {
			continue // it has nothing to forget
		}
		if s.restarts > 0 {
			t := s
			t.restarts--
			f := &t.nodes[i]
			f.counter, f.holder, f.young = 0, 0, s.now+uint8(x.Delay)
			x.add(t)
		}
		if s.flushes > 0 {
			t := s
			t.flushes--
			f := &t.nodes[i]
			f.counter, f.holder = 0, 0
			x.add(t)
		}
	}
}

// other is a command of another attempt, which takes the lock and a number at a node.
func (x *search) other(s State, n int) {
	node := &s.nodes[n]
	before := int(node.counter)
	first, last := x.clock(&s, n)
	for clock := first; clock <= last; clock += x.wrongStep() {
		for g := 1; g <= x.largest(); g++ {
			if x.takes(before, clock, g, 0) && x.proposes(&s, g, 0, x.looksAtP2(before)) {
				t := s
				t.others--
				t.nodes[n].counter, t.nodes[n].holder = uint8(g), 0
				x.add(t)
			}
		}
	}
}

// attempt is what an attempt does next, or what happens to its commands.
func (x *search) attempt(s State, i int) {
	a := &s.attempts[i]
	switch a.phase {
	case waits:
		x.begin(s, i)
	case asks:
		x.vote(s, i)
		x.count(s, i)
		x.second(s, i)
	case proposes:
		x.accept(s, i)
		x.again(s, i)
		if x.decides(int(a.accepted)) {
			x.complete(s, i, a.token, x.BlocksAgain)
		}
		x.vote(s, i)
	case complete:
		if x.Late {
			x.vote(s, i)
			x.accept(s, i)
		}
	}
}

func (x *search) begin(s State, i int) {
	a := &s.attempts[i]
	a.phase, a.until = asks, s.now+uint8(x.Round)
	for _, o := range s.attempts {
		a.least = max(a.least, o.done)
	}
	x.add(s)
}

// vote is the command that takes the lock, at each node where it may still come. A vote may take a node from another attempt at any
// moment, as if that had been released or its lease were over.
func (x *search) vote(s State, i int) {
	for n := range nodes {
		if s.mayCome(n, i) {
			first, last := x.clock(&s, n)
			for clock := first; clock <= last; clock += x.wrongStep() {
				x.voteOf(s, i, n, clock)
			}
		}
	}
}

// clock returns the first and the last time that a node may tell.
func (x *search) clock(s *State, n int) (int, int) {
	if s.nodes[n].wrong {
		return 1, x.lastClock()
	}
	c := int(s.now) + int(s.nodes[n].skew) - x.Skew
	return c, c
}

// voteOf is the command that takes the lock, at a node that has that time. The node takes a proposal or none: it may refuse
// any number, as if the client had not proposed one.
func (x *search) voteOf(s State, i, n, clock int) {
	node, a := &s.nodes[n], &s.attempts[i]
	before := int(node.counter)
	secondCopy := node.holder == uint8(i+1)
	node.holder = uint8(i + 1)
	if node.of[i].copies++; node.of[i].copies > 1 {
		s.repeats--
	}
	x.answer(s, i, n, clock, before, 0)
	if secondCopy { // T1
		for which, p := range [...]uint8{a.p1, a.p2} {
			if x.CountsSecondCopy && p > 0 && p == node.counter {
				x.answer(s, i, n, clock, before, which+1)
			}
		}
		return
	}
	p, which := &a.p1, 1
	if x.looksAtP2(before) {
		p, which = &a.p2, 2
	}
	first, last := 1, x.largest()
	if *p > 0 {
		first, last = int(*p), int(*p)
	}
	for g := first; g <= last; g++ {
		if x.takes(before, clock, g, int(a.more)) && x.proposes(&s, g, int(a.more), which == 2) {
			t := s
			t.nodes[n].counter = x.sets(g, int(a.more)) // T4
			if which == 1 {
				t.attempts[i].p1 = uint8(g)
			} else {
				t.attempts[i].p2 = uint8(g)
			}
			x.answer(t, i, n, clock, before, which)
		}
	}
}

// answer is the answer to a vote. A young node does everything that others do, but its vote does not count. The second round goes
// also to the nodes that voted too late for its number, or when they were young; if they had no counter, only with a number for such a node. A
// client hears one answer of each node.
func (x *search) answer(s State, i, n, clock, before, took int) {
	x.add(s) // the answer is lost
	node, a := &s.nodes[n], &s.attempts[i]
	d := &node.of[i]
	none := before == 0 && !x.TrustsTaken || node.counter == 0
	switch {
	case a.phase == asks && d.heard == 0 && x.counts(node):
		d.heard, d.took, d.yes = uint8(clock), uint8(took), true
		a.largest = max(a.largest, node.counter)
		a.none = a.none || none
		x.add(s)
	case (a.phase == asks || a.phase == proposes) && !d.yes && (!none || a.none && a.phase == proposes || x.ProposesToLate):
		d.yes = true
		x.add(s)
	}
}

// count completes the attempt if a majority took the same number (T5).
func (x *search) count(s State, i int) {
	a := &s.attempts[i]
	var took [3]int
	for n := range s.nodes {
		took[s.nodes[n].of[i].took]++
	}
	if x.decides(took[1]) {
		x.complete(s, i, a.p1, true)
	}
	if x.decides(took[2]) {
		x.complete(s, i, a.p2, true)
	}
	if x.AddsUp && x.decides(took[1]+took[2]) {
		x.complete(s, i, max(a.p1, a.p2), true)
	}
}

// second begins the second round (T7). Of two votes the client's own clock is the third.
func (x *search) second(s State, i int) {
	var times [nodes]int
	votes := 0
	for n := range s.nodes {
		if heard := s.nodes[n].of[i].heard; heard > 0 {
			times[votes] = int(heard)
			votes++
		}
	}
	switch {
	case votes < majority:
	case votes == nodes:
		x.propose(s, i, x.number(&s.attempts[i], times))
	case s.attempts[i].wrongClock:
		for c := 1; c <= x.lastClock(); c += x.wrongStep() {
			times[votes] = c
			x.propose(s, i, x.number(&s.attempts[i], times))
		}
	default:
		for _, c := range [...]int{int(s.now) - x.Skew, int(s.now) + x.Skew} {
			times[votes] = c
			x.propose(s, i, x.number(&s.attempts[i], times))
		}
	}
}

// propose forgets what the client does not look at again, and proposes a token.
func (x *search) propose(s State, i, token int) {
	s.ended(i)
	a := &s.attempts[i]
	a.none = a.none && !x.AcceptsBehind
	a.phase, a.token, a.proposals = proposes, uint8(token), a.proposals+1
	x.add(s)
}

// accept is the proposal of the second round, at each node where it may still come.
func (x *search) accept(s State, i int) {
	a := &s.attempts[i]
	for n := range s.nodes {
		t := s
		node := &t.nodes[n]
		if !node.of[i].yes || node.of[i].proposed || node.holder != uint8(i+1) && !x.AcceptsAnything {
			continue
		}
		node.of[i].proposed = true
		if !x.accepts(int(node.counter), a) {
			if a.phase == proposes && int(a.proposals) < x.Proposals && x.counts(node) {
				t.attempts[i].largest = max(a.largest, node.counter)
				x.add(t)
			}
			continue
		}
		node.counter = a.token
		x.add(t) // the answer is lost
		if a.phase == proposes && x.counts(node) {
			t.attempts[i].accepted++
			x.add(t)
		}
	}
}

// again proposes a larger token, where a node refused because it knows a larger number.
func (x *search) again(s State, i int) {
	a := &s.attempts[i]
	if int(a.proposals) < x.Proposals && a.largest >= a.token {
		token := max(a.token, a.largest) + 1
		for n := range s.nodes {
			s.nodes[n].of[i].proposed = false
		}
		a.accepted, a.largest = 0, 0
		x.propose(s, i, int(token))
	}
}

// complete is the end of an acquire: here is what has to hold. Of a block all tokens are used.
func (x *search) complete(s State, i int, token uint8, block bool) {
	a := &s.attempts[i]
	first := token
	switch {
	case block && a.phase == asks:
		first -= a.more
	case block:
		token += a.more
	}
	both := false
	for _, o := range s.attempts {
		both = both || o.done > 0
		if o.done > 0 && o.begins <= token && first <= o.done {
			x.refute(s, i, first, token, fmt.Sprintf("tokens are unique: %d twice", max(first, o.begins)))
		}
	}
	if first <= a.least {
		x.refute(s, i, first, token, fmt.Sprintf("tokens grow: %d after %d", first, a.least))
	}
	if both {
		return // nothing can be wrong any more
	}
	s.ended(i)
	a.phase, a.begins, a.done, a.until, a.least, a.accepted, a.proposals = complete, first, token, 0, 0, 0, 0
	a.none = a.none && !x.AcceptsBehind
	if !x.Late { // nothing is left of it
		a.p1, a.p2, a.token, a.none, a.more = 0, 0, 0, false, 0
		for n := range s.nodes {
			node := &s.nodes[n]
			node.of[i] = Dealings{}
			if node.holder == uint8(i+1) {
				node.holder = 0
			}
		}
	}
	x.add(s)
}

// ended forgets what an attempt was told in a round that is over. What is not looked at again is the same in all states.
func (s *State) ended(i int) {
	s.attempts[i].largest = 0
	for n := range s.nodes {
		s.nodes[n].of[i].heard, s.nodes[n].of[i].took = 0, 0
	}
}

func (x *search) refute(s State, i int, first, token uint8, why string) {
	if x.out.Refuted != "" {
		return
	}
	s.attempts[i].phase, s.attempts[i].begins, s.attempts[i].done = complete, first, token
	x.out.Refuted = why
	x.out.Way = append(append([]State(nil), x.way...), s)
}
