package handover

import "hash/maphash"

// Outcome is what a search has found.
type Outcome struct {
	States  int      // so many different states were seen
	Refuted string   // what was found to be wrong; empty: nothing
	Way     []string // how it came to that
	GaveUp  bool     // there are more states than the limit
}

// search goes through all states.
type search struct {
	*Model
	seed    maphash.Seed
	seen    map[uint64]struct{} // hashes of canonical states
	entries []entry
	breadth bool // the nearest states first, and entries are kept; otherwise depth first
	at      int  // of entries: which is looked at
	out     Outcome
}

// An entry is a state that was found.
type entry struct {
	state  State
	step   step  // that led to the state
	from   int32 // the entry that it came of; -1 for none
	looked bool  // what may come of it was added
}

// Search goes through all states of the model, depth first, to the first that is wrong. It gives up at the limit.
func (m *Model) Search(limit int) Outcome { return m.search(limit, false) }

// Shortest does the same with the nearest states first, so that the way to what is wrong is the shortest. It needs more memory.
func (m *Model) Shortest(limit int) Outcome { return m.search(limit, true) }

// search goes through all states that come of the first one, in which nothing has begun.
func (m *Model) search(limit int, breadth bool) Outcome {
	x := &search{Model: m, seed: maphash.MakeSeed(), seen: make(map[uint64]struct{}), breadth: breadth, at: -1}
	x.add(State{forces: uint8(m.Forces), renewals: uint8(m.Renewals), copies: uint8(m.Copies)}, step{})
	for {
		if breadth {
			x.at++
		} else {
			x.at = x.last()
		}
		if x.at < 0 || x.at >= len(x.entries) || x.out.Refuted != "" {
			return x.out
		}
		if x.out.States == limit {
			x.out.GaveUp = true
			return x.out
		}
		x.out.States++
		s := x.entries[x.at].state
		if x.finished(&s) {
			continue
		}
		for i := range m.Attempts {
			x.client(s, i)
			for n := range nodes {
				x.node(s, i, n)
			}
		}
	}
}

// last returns the entry to look at next, depth first. It removes those behind that entry, of which all is known. An entry stays as long
// as there is one that came of it.
func (x *search) last() int {
	for len(x.entries) > 0 {
		at := len(x.entries) - 1
		if e := &x.entries[at]; !e.looked {
			e.looked = true
			return at
		}
		x.entries = x.entries[:at]
	}
	return -1
}

// finished tells whether no property can be violated any more.
func (x *search) finished(s *State) bool {
	if x.Settles {
		return false
	}
	for i := range x.Attempts {
		if !s.attempts[i].isOver() {
			return false
		}
	}
	return true
}

// add notes a state, unless it is known.
func (x *search) add(s State, st step) {
	s = s.cleared(x.Model)
	h := maphash.Comparable(x.seed, s.canonical())
	if _, ok := x.seen[h]; !ok {
		x.seen[h] = struct{}{}
		x.entries = append(x.entries, entry{state: s, step: st, from: int32(x.at)})
	}
}

// client is what the client of attempt i may do next, without a message.
func (x *search) client(s State, i int) {
	to := func(what what) step { return step{what, uint8(i), 0} }
	a := &s.attempts[i]
	switch a.phase {
	case waits:
		x.begin(s, i, to(begins))
	case asks:
		x.giveUp(s, i, to(givesUp))
	case won:
		x.giveUp(s, i, to(givesUp))
		if a.token == 0 {
			a.token = a.largest + 1
			x.add(s, to(proposes))
		}
	case complete:
		x.renew(s, i)
		x.unlock(s, i, to(unlocksNow))
	case unlocks:
		x.say(s, i, to(says))
	case over:
		if x.Settles && s.has(i) == 0 && s.nodes[0].of[i].vote == came && s.nodes[1].of[i].vote == came && s.nodes[2].of[i].vote == came {
			a.phase = settled
			x.add(s, to(settles))
		}
	}
}

// node is what may come to node n for the field of attempt i, and to its client from there.
func (x *search) node(s State, i, n int) {
	to := func(what what) step { return step{what, uint8(i), uint8(n)} }
	a, d := &s.attempts[i], &s.nodes[n].of[i]
	if a.phase == waits {
		return
	}
	if d.vote != came {
		x.vote(s, i, n, to(votes))
	} else if s.copies > 0 {
		t := s
		t.copies--
		x.vote(t, i, n, to(votesAgain))
	}
	if d.pending {
		x.hear(s, i, n, to(hears))
	}
	if a.phase == won && a.token > 0 && d.yes && !d.proposed {
		x.accept(s, i, n, to(accepts))
	}
	x.release(s, i, n)
	x.force(s, i, n)
	if a.renews && d.extended == noAnswer {
		x.extend(s, i, n, to(answersRenewal))
	}
	if d.back {
		x.withdraw(s, i, n, to(withdraws))
	}
	if x.AsksAfterUnlock && a.phase >= unlocks && s.renewals > 0 && d.vote == came && s.nodes[n].holder != uint8(i+1) {
		s.renewals--
		d.vote = anew
		x.add(s, to(asksLate))
	}
}

// refute ends the search, unless it does not look at the property. The step st leads from the state that is looked at to s, which is wrong.
func (x *search) refute(s State, st step, p Property, why string) {
	if x.out.Refuted != "" || x.ignores(p) {
		return
	}
	x.out.Refuted = why
	x.out.Way = append(x.way(), st.String()+": "+s.String())
}

// way tells how it came to the state that is looked at.
func (x *search) way() []string {
	var all []string
	for at := x.at; at > 0; {
		e := &x.entries[at]
		all = append([]string{e.step.String() + ": " + e.state.String()}, all...)
		at = int(e.from)
	}
	return all
}
