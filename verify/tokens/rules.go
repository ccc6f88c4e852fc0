package tokens

const (
	nodes    = 3
	majority = 2
	attempts = 2
)

// Rules are the ways in which a node or a client may be naive. The zero value is the rules as they should be.
type Rules struct {
	AcceptsEqual      bool // T2, T3, T7: a node takes a number that is as large as its counter
	CountsSecondCopy  bool // T1: a second copy that finds its number in the counter says that it took it
	TakesPast         bool // T2: a node takes p1 below its own time
	TakesFar          bool // T2: a node takes p1 up to its own time and a
	TakesP1Anywhere   bool // T3: a node without a counter takes p1
	TakesPastP2       bool // T3: a node without a counter takes p2 below its own time and a
	AddsUp            bool // T5: the client adds up who took p1 and who took p2
	MinorityDecides   bool // T5: one node is enough
	YoungCounts       bool // T5: the client counts a node that has just restarted
	ProposesToLate    bool // T7: the client proposes a number that was not made for it to a late voter that had no counter
	AcceptsBehind     bool // T7: a node without a counter accepts a number that was not made for one
	FloorWithoutSlack bool // T7: the number is only a quarter of the delay ahead of the time where a voter has no counter
	TrustsTaken       bool // T7: the client takes a node that took p2 for one that had a counter
	AcceptsAnything   bool // T7: a node accepts whatever it is told, also for a field that it has not got
	NoClock           bool // T7: the number is one more than the counters that were told
	LatestClock       bool // T7: the number is at least the largest of the times, not the middle one
	NotAhead          bool // T7: the number is not ahead of the time where a voter has no counter
	LooksAtLast       bool // T8: a node looks only at the last token of a block
	SetsFirst         bool // T8: a node sets its counter to the first token of a block
	BlocksAgain       bool // T8: the second round proposes one token, and the client uses a block from that on
	Beyond            bool // T8: a block goes on beyond the time and s, however long it is
}

// Bounds say how much can happen in a search. Times are in ticks.
type Bounds struct {
	Used      bool // all nodes have the counter 1 at first
	Restarts  int  // so often a node restarts
	Flushes   int  // so often a node forgets everything while it runs
	Wrong     int  // so many clocks say anything: 0, 1 (a node's or a client's) or all
	Skew      int  // right clocks are so much ahead or behind
	Round     int  // an attempt takes no longer
	Delay     int  // a node that has restarted counts after that
	Ahead     int  // a quarter of the delay
	Slack     int  // s in T2 and T3; a block is on top of it
	Block     int  // so many tokens more an attempt may take with its votes; each takes as many, or none
	Longer    int  // the time goes on for so much longer than the delay and a round
	AnyTime   bool // a wrong clock shows each time, not only one that is far behind and one that is far ahead
	Repeats   int  // so often a command that takes the lock comes to its node a second time
	Proposals int  // an attempt proposes so often in the second round; 0 is 1
	Others    int  // so often a node takes a number from an attempt that is not looked at otherwise
	Late      bool // commands come also when the client has stopped to wait for their answers
	Honest    bool // T6: a client proposes what the right clocks or a counter give
}

// Model is what is searched.
type Model struct {
	Rules
	Bounds
}

// The first tick leaves room for a clock that is behind, and for a wrong one that is far behind.
const far = 2

// perTick returns how many numbers there are in a tick. In the code a microsecond is shorter than any acquire, so that the attempts
// of one tick can each propose a counter and 1 and are not ahead of the time.
func (m *Model) perTick() int {
	return attempts*(1+m.block()) + 1 + 2*m.Others + 2*max(m.Proposals-1, 0)
}

func (m *Model) firstTick() int { return m.Skew + far }
func (m *Model) lastTick() int  { return m.firstTick() + m.Delay + m.Round + m.Longer }

// lastClock is the latest time that a wrong clock shows.
func (m *Model) lastClock() int { return m.lastTick() + m.Skew + far }

// wrongStep is how far the times are apart that a wrong clock shows.
func (m *Model) wrongStep() int {
	if m.AnyTime {
		return 1
	}
	return m.lastClock() - 1
}

// largest is a number that is beyond all that a node takes from the first round.
func (m *Model) largest() int { return (m.lastClock()+m.Ahead+1)*m.perTick() + 2*m.slack() }

// slack is s, and ahead is a, as numbers.
func (m *Model) slack() int { return m.Slack*m.perTick() + m.block() }
func (m *Model) ahead() int { return m.Ahead*m.perTick() + m.slack() }

// block is how many tokens a tick and s have room for.
func (m *Model) block() int {
	if m.Beyond {
		return 0
	}
	return m.Block
}

// takes says whether a node with that counter and clock takes the number g from a command that takes the lock (T2, T3). So many
// tokens of the same block come before g (T8).
func (m *Model) takes(counter, clock, g, more int) bool {
	first, now := g-more, clock*m.perTick()
	if m.LooksAtLast {
		first = g
	}
	if m.Beyond {
		g = first
	}
	if m.looksAtP2(counter) {
		least := now + m.ahead()
		return (first >= least || m.TakesPastP2) && g <= least+m.slack()
	}
	most := now + m.slack()
	if m.TakesFar {
		most += m.ahead() - m.slack()
	}
	return m.larger(first, counter) && (first >= now || m.TakesPast) && (g <= most || first == counter+1)
}

// sets returns what a node sets its counter to that takes g.
func (m *Model) sets(g, more int) uint8 {
	if m.SetsFirst {
		return uint8(g - more)
	}
	return uint8(g)
}

// looksAtP2 says which of the two proposals is for a node with that counter.
func (m *Model) looksAtP2(counter int) bool { return counter == 0 && !m.TakesP1Anywhere }

// larger says whether a node with that counter accepts g as a larger number.
func (m *Model) larger(g, counter int) bool { return g > counter || g == counter && m.AcceptsEqual }

// proposes says whether a client may propose g as p2, or else as p1 (T6). It may be any number unless the client is honest. Then
// it is at most what a right clock and the slack give, or it is a counter or a token and 1.
func (m *Model) proposes(s *State, g, more int, p2 bool) bool {
	if !m.Honest {
		return true
	}
	most := (int(s.now)+m.Skew)*m.perTick() + m.slack()
	if p2 {
		most += m.ahead()
	}
	ok := g <= most
	for i := range s.nodes {
		ok = ok || s.nodes[i].counter > 0 && g-more == int(s.nodes[i].counter)+1
	}
	for i := range s.attempts {
		ok = ok || s.attempts[i].done > 0 && g-more == int(s.attempts[i].done)+1
	}
	return ok
}

// accepts says whether a node with that counter accepts the proposal of the second round (T7).
func (m *Model) accepts(counter int, a *Attempt) bool {
	return m.AcceptsAnything || m.larger(int(a.token), counter) && (counter > 0 || a.none || m.AcceptsBehind)
}

// decides says whether so many nodes are enough for a token (T5).
func (m *Model) decides(n int) bool { return n >= majority || n == 1 && m.MinorityDecides }

// counts says whether the client counts the answer of a node.
func (m *Model) counts(n *Node) bool { return n.young == 0 || m.YoungCounts }

// number returns what the client proposes in the second round, by the times that were told to it (T7).
func (m *Model) number(a *Attempt, times [nodes]int) int {
	middle := times[0] + times[1] + times[2] - max(times[0], times[1], times[2]) - min(times[0], times[1], times[2])
	switch {
	case m.NoClock:
		middle = 0
	case m.LatestClock:
		middle = max(times[0], times[1], times[2])
	}
	middle *= m.perTick()
	if a.none && !m.NotAhead && !m.NoClock {
		middle += m.ahead()
		if m.FloorWithoutSlack {
			middle -= m.slack()
		}
	}
	return max(int(a.largest)+1, middle)
}
