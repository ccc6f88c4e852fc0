package quorum

import (
	"cmp"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"time"
)

// rivals is what this client knows of other clients that want the same lock. If there are any, an attempt asks one node first, the
// same for all clients, and asks the other nodes only if it has got that one: so the votes are not split. An attempt that is refused
// there has cost one operation on one node, and its waiter waits to be told. A release after a short hold tells a few of the waiters.
// The owner of the lock is the hold that has it on a majority of the nodes.
type rivals struct {
	lastMet    time.Time // when an attempt of this client met another client's for the last time
	splits     int       // attempts in a row that met others while nobody had a majority
	field      string    // the field of the hold that had the first node, when that was asked last
	since      time.Time // when that hold was first seen there
	owner      string    // the owner's field, when all nodes were asked last; the first node may still have the field of an earlier hold
	ownerSeen  time.Time // when that owner was last seen to have a majority
	ownerSince time.Time // when that owner was first seen, with a majority or on the first node
	lacksFirst bool      // the owner had not got the first node
	failed     time.Time // when an attempt of this client failed without an owner in sight
	told       int       // how many clients listened at this client's latest release of the lock
}

const (
	// rivalry is for how long after meeting another client an attempt asks the first node alone.
	rivalry = time.Minute
	// doubtAfter bounds when a waiter that has met a new hold looks at the lock again: after a random time from half of it to all
	// of it.
	doubtAfter = 200 * time.Millisecond
	// trustOwner is for how long after an owner was seen to have a majority this client takes it for the owner without asking the
	// other nodes, while it has the first node.
	trustOwner = time.Second
)

// contended returns the node that an attempt is to ask first, where other clients want the lock; nil where no other is known. lock is
// the lock's channel, here and below.
func (s *store) contended(lock string) *node {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.rivals[lock]; r == nil || time.Since(r.lastMet) > rivalry {
		return nil
	}
	return s.first(lock)
}

// noteRivals notes that an attempt has met other clients, and calls note with what is known of them, with s.mu held.
func (s *store) noteRivals(lock string, note func(*rivals)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.rivals[lock]
	if r == nil {
		if len(s.rivals) >= s.sweepRivalsAt {
			for name, r := range s.rivals {
				if time.Since(r.lastMet) > rivalry {
					delete(s.rivals, name)
				}
			}
			s.sweepRivalsAt = max(minSweep, 2*len(s.rivals))
		}
		r = new(rivals)
		s.rivals[lock] = r
	}
	r.lastMet = time.Now()
	note(r)
}

// failed notes that an attempt of this client failed without an owner in sight. This client too hears of that attempt's release.
func (s *store) failed(lock string) {
	s.noteRivals(lock, func(r *rivals) { r.failed = time.Now() })
}

// released notes how many clients were told of this client's release. Where none was, no other client waits.
func (s *store) released(lock string, told int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if told == 0 {
		delete(s.rivals, lock)
	} else if r := s.rivals[lock]; r != nil {
		r.told = told
	}
}

// tries tells whether this client is one of the few that ask for the lock at once when they hear of a release: as many as askAtOnce, on
// the average. A client is none of them while the release may be that of its own failed attempt.
func (s *store) tries(lock string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.rivals[lock]
	return r == nil || time.Since(r.failed) > idleAfter && rand.N(max(r.told, 1)) < askAtOnce
}

// ownerLacksFirst tells whether the owner was seen without the first node.
func (s *store) ownerLacksFirst(lock string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.rivals[lock]
	return r != nil && r.lacksFirst
}

// believes notes that the first node has this field, and tells whether the attempt can do without asking the other nodes: the field
// was seen there less than doubtAfter/2 ago for the first time, so that it may become the owner, or was seen to be the owner less
// than trustOwner ago. pause is the time after which the waiter is to look again.
func (s *store) believes(lock, field string) (pause time.Duration, believed bool) {
	s.noteRivals(lock, func(r *rivals) {
		if r.field != field {
			*r = rivals{lastMet: r.lastMet, splits: r.splits, failed: r.failed, told: r.told, field: field, since: time.Now()}
		}
		believed = time.Since(r.since) < doubtAfter/2 || r.owner == field && time.Since(r.ownerSeen) < trustOwner
		pause = r.pause()
	})
	return pause, believed
}

// noteOwner notes that the hold of this field is the owner, by the votes, and returns the time after which the waiter is to look again.
func (s *store) noteOwner(lock string, votes *round, field string) (pause time.Duration) {
	lacksFirst, known := false, true
	if first := s.first(lock); first != nil {
		a := votes.asks[first.index]
		known = a != nil && a.state == answered
		lacksFirst = known && a.report.Holder != field
	}
	s.noteRivals(lock, func(r *rivals) {
		if r.owner == field && !known {
			lacksFirst = r.lacksFirst // the other nodes have shown the owner before the first node answered: what was known of the first node stays
		}
		if r.owner != field {
			r.owner, r.ownerSince = field, time.Now()
			if !lacksFirst && r.field == field {
				r.ownerSince = r.since
			}
		}
		r.ownerSeen, r.lacksFirst, r.splits = time.Now(), lacksFirst, 0
		pause = r.pause()
	})
	return pause
}

// pause returns the time after which a waiter is to look again: forever for an owner that was first seen doubtAfter/2 ago or more,
// because its release tells all waiters (see fieldRecord.short).
func (r *rivals) pause() time.Duration {
	if r.owner != "" && time.Since(r.ownerSince) >= doubtAfter/2 {
		return forever
	}
	return between(doubtAfter/2, doubtAfter)
}

// split notes that nobody had a majority, and returns the random time after which this client tries again. The time grows with each
// such attempt in a row, up to 16 times the upper bound of WithRetryDelay.
func (s *store) split(lock string) time.Duration {
	var n int
	s.noteRivals(lock, func(r *rivals) {
		r.splits = min(r.splits+1, 10)
		n = r.splits
	})
	least, most := s.retry[0], s.retry[1]
	return between(least, min(max(least, most/8)<<n, 16*most))
}

// first returns the first node of a lock, the one that attempts ask first: the same for all clients, as long as it counts, answers
// all of them, and is not much farther away from one of them than most of the other nodes. It is nil where fewer nodes than a
// majority answer and count. The choice is a matter of speed, not of safety.
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
	if len(trips) < s.majority {
		return nil
	}
	slices.Sort(trips)
	far := 4*trips[s.majority-1] + 5*time.Millisecond
	for i := range s.sorted {
		n := s.sorted[(start+i)%len(s.sorted)]
		if trip, there := n.near(); there && trip <= far {
			return n
		}
	}
	return nil
}

// byName returns the nodes in an order that is the same for all clients that have the same names for them.
func byName(nodes []*node) []*node {
	return slices.SortedFunc(slices.Values(nodes), func(a, b *node) int { return cmp.Compare(a.name, b.name) })
}
