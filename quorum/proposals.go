package quorum

import (
	"slices"
	"time"

	"github.com/fencelock/fencelock/scripts"
)

// A nodeClock is what a client knows of a node's clock.
type nodeClock struct {
	zero int64         // the node's time, in microseconds since 1970, when the client's was zero, at store.born
	trip time.Duration // of the answer that told it: so far it may be off, and no more
	at   time.Time     // when that answer came; zero for none
}

const (
	// clockRenewed is how long the answer with the shortest trip is better than the latest one.
	clockRenewed = 5 * time.Second
	// clockKept is how long an answer tells the node's clock.
	clockKept = time.Minute
)

// heard notes the node's time by an answer that took so long, and came now. born is when the client's time was zero.
func (c *nodeClock) heard(told int64, took time.Duration, now, born time.Time) {
	if c.at.IsZero() || took <= c.trip || now.Sub(c.at) > clockRenewed {
		*c = nodeClock{told - (now.Sub(born) - took/2).Microseconds(), took, now}
	}
}

// clock returns the middle one of the nodes' clocks, which one wrong clock does not move beyond the others; of two nodes the client's own
// clock is the third. known is false where too few nodes have told theirs: a client has no clock of its own that the nodes would follow.
func (s *store) clock(now time.Time) (micros int64, known bool) {
	age := now.Sub(s.born).Microseconds()
	times := make([]int64, 0, len(s.nodes)+1)
	for _, n := range s.nodes {
		n.mu.Lock()
		if c := n.clock; !c.at.IsZero() && now.Sub(c.at) < clockKept {
			times = append(times, c.zero+age)
		}
		n.mu.Unlock()
	}
	if len(times) < min(len(s.nodes), 3) {
		return 0, false
	}
	if len(times) == 2 {
		times = append(times, now.UnixMicro())
	}
	slices.Sort(times)
	return times[len(times)/2], true
}

// slack is how far a number that is proposed with a vote may be off the node's own.
func (s *store) slack() time.Duration { return s.longest / 16 }

// ahead is how far ahead of the time a token is at least that a node accepts which has no counter, and may have forgotten it.
func (s *store) ahead() time.Duration { return s.delay/4 + s.slack() }

// mostAhead is how many tokens in a row nodes accept next to their counter, however far that is
// ahead: an acquire takes longer than so many microseconds.
const mostAhead = 33

// proposal is what the nodes may accept with their votes (see the package doc), and how many tokens
// in a row; 0 where this client has no number to propose.
func (s *store) proposal(lock string, expiry time.Duration, want int) (p scripts.Proposal, tokens int) {
	now, known := s.clock(time.Now())
	if !known {
		return p, 0
	}
	last, slack := s.counter(lock), s.slack().Microseconds()
	now += slack / 2
	n := int64(max(want, 1))
	if n > slack/4 || last+n > now+slack/4 { // the first or the last might be too far off a node's time
		n = min(n, mostAhead)
	}
	p = scripts.Proposal{Token: max(now, last+n), First: now + s.ahead().Microseconds(), Ahead: s.ahead(), Slack: s.slack(), Expiry: expiry}
	if p.Token >= maxToken || p.First >= maxToken {
		return p, 0
	}
	return p, int(n)
}
