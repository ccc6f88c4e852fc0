package handover

// Rules are the ways in which a node or a client may be naive. The zero value is the rules as they should be.
type Rules struct {
	DropsAny          bool // R7: a client that was called takes a node from whatever field it finds there
	DropsUnlocking    bool // R7: a client names a field of its own whose Unlock is not over
	WithdrawsLate     bool // R8: a late yes of an attempt that won is withdrawn alone, by a release that names the field
	WithdrawsUnnamed  bool // R8: the same, by a release that names nothing
	ForceNames        bool // R8: the release of a ForceUnlock names the field
	CountsAfterGiveUp bool // R8: an attempt that was given up, and released, counts the votes that come
	AsksAfterUnlock   bool // R8: a renewal asks for votes when the Unlock has begun
	GoneIsReleased    bool // R9: a node where the field is gone counts as released whatever the home says
	GoneIsLost        bool // R9: such a node counts as lost whatever the home says
	LostWithoutAnswer bool // R9: Unlock says lost although a node has not answered that may have called somebody with the name
	HomeAlone         bool // R9: only the home's word counts, where other nodes call too
	NodesTell         bool // R9, another form: a node that drops a field remembers it, and the release that finds nothing is told; the home's word is not needed
	TakesUnchecked    bool // T2: where a node drops a field for a client that was called, it takes the client's number as it is
	CallsUnfound      bool // R10: a release that finds nothing, and the lock free, calls with the field's name
}

// Bounds say how much can happen in a search.
type Bounds struct {
	Attempts  int      // 2 or 3
	Tokens    bool     // an acquire takes a token; otherwise a majority completes it
	OneRound  bool     // the votes propose a number, and the second round comes only where that gave no token
	Forces    int      // so many ForceUnlocks
	Renewals  int      // so many renewals
	Copies    int      // so often a vote comes a second time
	Again     bool     // the release of an Unlock may come to a node twice before the Unlock is over
	AllCall   bool     // R11: every node has a line, and its releases call
	Own       bool     // a client names the field that it had itself before
	Settles   bool     // an owner whose releases were all confirmed sends none any more
	ExemptAny bool     // a hold is not looked at any more when a ForceUnlock has removed it on any node
	NamedToo  bool     // Unlock must not say nil where a majority was forced open before it, also if somebody was called with the name
	Ignore    Property // what is not looked at
}

// Property is something that has to hold. They are flags, for Bounds.Ignore.
type Property uint8

// The properties, as the package comment tells them.
const (
	Exclusion Property = 1 << iota
	Order
	SaysLost
	SaysNil
	GivenUp
	Nothing
)

// verdicts are what Unlock and renewals say. A search that does not look at them has no answers to a release, and so far fewer states.
const verdicts = SaysLost | SaysNil

// Model is what is searched.
type Model struct {
	Rules
	Bounds
}

// ignores says whether the search does not look at a property.
func (m *Model) ignores(p Property) bool { return m.Ignore&p == p }

// free says whether the vote of attempt i takes the lock at this node, or finds it there (R6, R7).
func (m *Model) free(s *State, i, n int) bool {
	h, prev := s.nodes[n].holder, s.attempts[i].prev
	return h == 0 || h == uint8(i+1) || prev > 0 && (h == prev || m.DropsAny)
}

// mayName says whether attempt i may begin with the field of attempt j as what it drops (R7).
func (m *Model) mayName(s *State, j int) bool {
	a := &s.attempts[j]
	return a.named || m.Own && (a.isOver() || a.phase == unlocks && m.DropsUnlocking)
}

// calls says whether the releases at this node call somebody (R11).
func (m *Model) calls(n int) bool { return n == home || m.AllCall }

// exempt says whether a ForceUnlock has ended the hold, so that others may have the lock.
func (m *Model) exempt(a *Attempt) bool { return a.open || a.forced && m.ExemptAny }

// Said is what an Unlock says.
type Said uint8

const (
	isNil   Said = iota
	isLost       // the hold was forced open
	isError      // too few nodes have answered to tell
)

// verdict is what Unlock says, by the answers that it has (R9).
func (m *Model) verdict(s *State, i int) Said {
	word, silent := false, false
	for n := range s.nodes {
		r := s.nodes[n].of[i].released
		if n == home || m.AllCall && !m.HomeAlone {
			word = word || r == removedCalled || r == goneCalled
		}
		silent = silent || m.calls(n) && r <= unheard
	}
	word = word && !m.GoneIsLost && !m.NodesTell || m.GoneIsReleased
	released, lost, unknown := 0, 0, 0
	for n := range s.nodes {
		d := &s.nodes[n].of[i]
		switch {
		case d.released <= unheard:
			unknown++
		case d.released <= dropped, word:
			released++
		case d.yes:
			lost++
		}
	}
	others := nodes - released - unknown // so many nodes may have been for somebody else
	if lost > 0 {
		others += unknown
	}
	switch {
	case unknown > nodes-majority:
		return isError
	case others < majority:
		return isNil
	case silent && !m.LostWithoutAnswer && !m.NodesTell:
		return isError
	}
	return isLost
}

// renewal is what a renewal finds, by the answers that it has: that the hold was forced open, or that the nodes which have not got
// the field are to be asked for their votes.
func (m *Model) renewal(s *State, i int) (lost, repairs bool) {
	held, without, taken := 0, 0, 0
	for n := range s.nodes {
		switch d := &s.nodes[n].of[i]; d.extended {
		case there:
			held++
		case away:
			without++
			taken += int(bit(d.yes))
		}
	}
	switch {
	case held >= majority:
		return false, without > 0
	case taken > nodes-majority, taken > 0 && without >= majority:
		return true, false
	}
	return false, taken == 0 && without > 0
}
