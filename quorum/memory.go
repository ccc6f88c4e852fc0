package quorum

import (
	"maps"
	"time"
)

// A memory is what a client knows of locks, by their channels. store.mu guards it.
type memory struct {
	locks   map[string]seen
	sweepAt int // with so many the next one sweeps
}

// A seen is what a client knows of one lock.
type seen struct {
	counter int64     // the largest token that was accepted, as far as is known: of use where it is ahead of the time, as a lock's first token is
	gone    string    // the field of this client's latest hold whose Unlock has ended; "" for none
	splits  int       // attempts in a row in which nobody had a majority
	lined   *node     // on which this client was in the line, or was to enter it, the last time; nil for none
	owned   *node     // a node that the owner of the lock had, when the home had not got it,
	until   time.Time // and until when this client takes that node for the home
	refused bool      // the home has refused this client's latest attempt, which asks the home alone then
	owner   string    // the field of the hold that was seen on a majority last; "" for none
	remnant string    // the field that the home had when this client got the lock last, on other nodes; "" for none
}

// ownersHome is for how long a client takes a node of the owner's for the home, whose own home seems to be another one.
const ownersHome = 10 * time.Second

// note changes what is known of a lock.
func (s *store) note(lock string, change func(*seen)) seen {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := &s.known
	l, there := m.locks[lock]
	if !there && len(m.locks) >= m.sweepAt {
		now := time.Now().UnixMicro()
		maps.DeleteFunc(m.locks, func(_ string, l seen) bool { return l.counter < now && time.Now().After(l.until) })
		m.sweepAt = max(minSweep, 2*len(m.locks))
	}
	change(&l)
	m.locks[lock] = l
	return l
}

// noteCounter notes a token that was accepted for a lock.
func (s *store) noteCounter(lock string, counter int64) {
	if counter > 0 {
		s.note(lock, func(l *seen) { l.counter = max(l.counter, counter) })
	}
}

// counter is the largest token that was accepted for the lock, as far as is known; 0 for none.
func (s *store) counter(lock string) int64 { return s.seen(lock).counter }

func (s *store) seen(lock string) seen {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.known.locks[lock]
}

// homeOfOwner is the node that this client takes for the home of the lock, as the owner has it, and the home has not; nil for none.
func (s *store) homeOfOwner(lock string) *node {
	if l := s.seen(lock); l.owned != nil && time.Now().Before(l.until) {
		return l.owned
	}
	return nil
}

// enters notes on which node this client enters the line of the lock, and returns the node on which it was before; nil where that is the same,
// or none.
func (s *store) enters(lock string, n *node) (before *node) {
	s.note(lock, func(l *seen) {
		if l.lined != n {
			before, l.lined = l.lined, n
		}
	})
	return before
}

// split notes that nobody had a majority, and returns the random time after which this client tries again. The time grows with each
// such attempt in a row, up to 16 times the upper bound of WithRetryDelay.
func (s *store) split(lock string) time.Duration {
	n := s.note(lock, func(l *seen) { l.splits = min(l.splits+1, 10) }).splits
	least, most := s.retry[0], s.retry[1]
	return between(least, min(max(least, most/8)<<n, 16*most))
}
