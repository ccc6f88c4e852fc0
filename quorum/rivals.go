package quorum

import (
	"cmp"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"time"
)

// rivals is what a client knows of others that want the same lock. If there are any, an attempt asks one node first, the
// same for all of them, and goes on to the others only if it has got that one: so the votes are not split. Who is refused
// there has cost one operation on one node, and waits to be told: a release after a short hold tells a few of the waiters.
type rivals struct {
	met    time.Time // when an attempt met another one for the last time
	splits int       // attempts in a row that met others, none of which had a majority
	field  string    // who had the first node, when it was asked last,
	since  time.Time // since when, as far as was seen
	owner  string    // who had a majority, which may be another one: the first node may have a hold of before still
	owned  time.Time // when it was seen to have one
	owning time.Time // since when, as far as was seen
	away   bool      // it had not got the first node
	failed time.Time // when an attempt of this client came to nothing, though no owner was seen
	told   int       // how many clients listened when this one released the lock
}

const (
	// rivalry is for how long rivals are expected after one was met.
	rivalry = time.Minute
	// doubtAfter is when a waiter looks again that has met somebody new: after half of it to all of it.
	doubtAfter = 200 * time.Millisecond
	// trustOwner is for how long an owner is taken for one as long as it has the first node.
	trustOwner = time.Second
)

// contended returns the node that is to be asked first, where others want the lock; else nil.
func (s *store) contended(lock string) *node {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.rivals[lock]; r == nil || time.Since(r.met) > rivalry {
		return nil
	}
	return s.first(lock)
}

// met notes that an attempt has met others.
func (s *store) met(lock string, note func(*rivals)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.rivals[lock]
	if r == nil {
		if len(s.rivals) >= s.sweepRivalsAt {
			for name, r := range s.rivals {
				if time.Since(r.met) > rivalry {
					delete(s.rivals, name)
				}
			}
			s.sweepRivalsAt = max(minSweep, 2*len(s.rivals))
		}
		r = new(rivals)
		s.rivals[lock] = r
	}
	r.met = time.Now()
	note(r)
}

// failed notes that an attempt came to nothing, though no owner was seen. Its release is told to this client too.
func (s *store) failed(lock string) {
	s.met(lock, func(r *rivals) { r.failed = time.Now() })
}

// released notes how many were told of a release. Where nobody was there are no rivals.
func (s *store) released(lock string, told int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if told == 0 {
		delete(s.rivals, lock)
	} else if r := s.rivals[lock]; r != nil {
		r.told = told
	}
}

// tries tells whether this client is one of the few that try when they hear of a release. It is not if the release may be
// that of its own attempt.
func (s *store) tries(lock string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.rivals[lock]
	return r == nil || time.Since(r.failed) > idleAfter && rand.N(max(r.told, 1)) < eager
}

// elsewhere tells whether the owner was seen without the node that is asked first.
func (s *store) elsewhere(lock string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.rivals[lock]
	return r != nil && r.away
}

// believes tells whether somebody who has the first node need not be asked about on the others, as it was found to be the
// owner, or may become it; and when the lock is to be looked at again.
func (s *store) believes(lock, field string) (pause time.Duration, believed bool) {
	s.met(lock, func(r *rivals) {
		if r.field != field {
			*r = rivals{met: r.met, splits: r.splits, failed: r.failed, told: r.told, field: field, since: time.Now()}
		}
		believed = time.Since(r.since) < doubtAfter/2 || r.owner == field && time.Since(r.owned) < trustOwner
		pause = r.pause()
	})
	return pause, believed
}

// owns notes who has a majority, and returns when the lock is to be looked at again.
func (s *store) owns(lock string, votes *round, field string) (pause time.Duration) {
	away, known := false, true
	if first := s.first(lock); first != nil {
		a := votes.asks[first.index]
		known = a != nil && a.state == answered
		away = known && a.report.Holder != field
	}
	s.met(lock, func(r *rivals) {
		if r.owner == field && !known {
			away = r.away // the others have told of the owner before the first node answered
		}
		if r.owner != field {
			r.owner, r.owning = field, time.Now()
			if !away && r.field == field {
				r.owning = r.since
			}
		}
		r.owned, r.away, r.splits = time.Now(), away, 0
		pause = r.pause()
	})
	return pause
}

// pause is when a waiter is to look again. Only who has had the lock for a while tells all of them when it is released: see
// ballot.short.
func (r *rivals) pause() time.Duration {
	if r.owner != "" && time.Since(r.owning) >= doubtAfter/2 {
		return forever
	}
	return between(doubtAfter/2, doubtAfter)
}

// split notes that nobody had a majority, and returns a random time after which contenders that had each a part of the
// nodes try again: it grows with each time that this happens.
func (s *store) split(lock string) time.Duration {
	var n int
	s.met(lock, func(r *rivals) {
		r.splits = min(r.splits+1, 10)
		n = r.splits
	})
	least, most := s.retry[0], s.retry[1]
	return between(least, min(max(least, most/8)<<n, 16*most))
}

// first is the node that settles between those who want this lock: the same for all clients, as long as it counts, and answers
// them all, and is not much farther away from one of them than most of the others. It is a matter of speed, not of safety.
func (s *store) first(lock string) *node {
	h := fnv.New32a()
	_, _ = h.Write([]byte(lock))
	start := int(h.Sum32() % uint32(len(s.sorted)))
	trips := make([]time.Duration, 0, len(s.sorted))
	for _, n := range s.sorted {
		if trip, there := n.near(); there {
			trips = append(trips, trip)
		}
	}
	if len(trips) < s.most {
		return nil
	}
	slices.Sort(trips)
	far := 4*trips[s.most-1] + 5*time.Millisecond
	for i := range s.sorted {
		n := s.sorted[(start+i)%len(s.sorted)]
		if trip, there := n.near(); there && trip <= far {
			return n
		}
	}
	return nil
}

// byName is the nodes in an order that is the same for all clients which call them the same.
func byName(nodes []*node) []*node {
	return slices.SortedFunc(slices.Values(nodes), func(a, b *node) int { return cmp.Compare(a.name, b.name) })
}
