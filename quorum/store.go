package quorum

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fencelock/fencelock/internal/engine"
	"github.com/fencelock/fencelock/scripts"
)

// A store is the nodes as an engine.Store: each operation on a lock is one or more rounds over the nodes.
type store struct {
	nodes  []*node
	sorted []*node // by name, so that all clients have the same order
	*members
	times
	asksAll  bool                   // WithAllNodes
	retry    [2]time.Duration       // the bounds of WithRetryDelay
	clientID atomic.Pointer[string] // this client's uuid, with which its fields begin; nil before the first acquire

	closed  <-chan struct{} // closed when Close has begun; set when the client is made
	probing atomic.Bool     // a probe of nodes that were not heard of is due

	mu      sync.Mutex
	fields  map[string]*fieldRecord // by field
	sweepAt int                     // with this many records the next one sweeps
	known   memory
}

// times are the times that a client of a quorum goes by.
type times struct {
	timeout time.Duration // of one node, for one operation: see within
	delay   time.Duration // this long after its start a node counts again
	longest time.Duration // the longest lease
	born    time.Time     // when the client's own time was zero
}

var _ engine.Store = (*store)(nil)

// extraLease is added to each lease on the nodes. With the client's margin of 1 ms and one percent it makes Redlock's drift of 2 ms
// and one percent.
const extraLease = time.Millisecond

// within returns the time of a round for an operation with this lease. A node has the node timeout to answer, or four times what its answers
// take where that is more, but no more than an eighth of the lease (see the package doc, on tokens), than ten node timeouts, and at least 1 ms. Lease 0 is an
// operation without a lease.
func (s *store) within(lease time.Duration) span {
	all := 10 * s.timeout
	if lease > 0 {
		all = max(min(all, lease/8), time.Millisecond)
	}
	return span{each: min(s.timeout, all), all: all}
}

// Send implements engine.Store. The operation is sent at once, so that its lease counts from now (P6).
func (s *store) Send(op *scripts.Op, caller scripts.Caller) {
	order := op.Order()
	caller.Sending(nil)
	s.do(order, caller.Answered)
}

// TakeBack implements engine.Store. An operation that was given to Send has been sent: there is nothing to take back.
func (s *store) TakeBack(*scripts.Op) bool { return false }

// Do implements engine.Store. The times of the rounds bound how long it takes, not the context.
func (s *store) Do(_ context.Context, op scripts.Op) (scripts.Answer, error) {
	type outcome struct {
		answer scripts.Answer
		err    error
	}
	ch := make(chan outcome, 1)
	s.do(op.Order(), func(a scripts.Answer, err error) { ch <- outcome{a, err} })
	got := <-ch
	return got.answer, got.err
}

// do carries out the operation. done is called once, from any goroutine.
func (s *store) do(o scripts.Order, done func(scripts.Answer, error)) {
	switch o.Verb {
	case scripts.ToAcquire:
		s.acquire(o, done)
	case scripts.ToLevel:
		s.level(o, done)
	case scripts.ToUnlock:
		s.release(o, done)
	case scripts.ToLeave:
		s.leave(o, done)
	case scripts.ToCount:
		s.askOne(s.homeOrFirst(o.Keys), scripts.WaitingOnNode(o.Keys), done)
	default:
		panic("quorum: an operation for one server") // handoffs are off
	}
}

// field returns the record of a field, and makes one where there is none. The field is about to be asked for with this lease: until that is
// over no sweep deletes the record.
func (s *store) field(field string, lease time.Duration) *fieldRecord {
	if s.clientID.Load() == nil {
		id, _, _ := strings.Cut(field, ":")
		s.clientID.Store(&id)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	rec := s.fields[field]
	if rec == nil {
		if len(s.fields) >= s.sweepAt {
			s.sweep()
		}
		rec = &fieldRecord{until: time.Now().Add(lease), nodes: make([]nodeRecord, len(s.nodes))}
		s.fields[field] = rec
	}
	return rec
}

const (
	// minSweep is the least number of records from which on a sweep is worth its time.
	minSweep = 64
	// maxUnheard is the number of records from which on a sweep deletes those too that only wait for a node to be heard of: a node that
	// never comes back is to cost no more than some megabytes.
	maxUnheard = 1 << 13
)

// sweep deletes the records that can no longer matter: of holds that were lost and never unlocked. With s.mu held.
func (s *store) sweep() {
	now, crowded := time.Now(), len(s.fields) >= maxUnheard
	for field, rec := range s.fields {
		if rec.expired(now, crowded) {
			delete(s.fields, field)
		}
	}
	s.sweepAt = max(minSweep, 2*len(s.fields))
}

// find returns the record of a field, nil where there is none, and whether the field is this client's own. For a field of this
// client without a record no release is owed: every node has confirmed one, or no node took the lock, or the hold expired.
func (s *store) find(field string) (rec *fieldRecord, own bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id, _, _ := strings.Cut(field, ":")
	client := s.clientID.Load()
	return s.fields[field], client != nil && *client == id
}

// givenUp tells whether the field is one of this client's own that it has given up.
func (s *store) givenUp(field string) bool {
	rec, own := s.find(field)
	return own && (rec == nil || rec.isGivenUp())
}

// isClosed tells whether the client is closed.
func (s *store) isClosed() bool {
	select {
	case <-s.closed:
		return true
	default:
		return false
	}
}

// drop deletes a record if no release is owed to any node, and tells whether one is owed.
func (s *store) drop(field string, rec *fieldRecord) (owed bool) {
	if rec.owed() {
		return true
	}
	s.mu.Lock()
	if s.fields[field] == rec {
		delete(s.fields, field)
	}
	s.mu.Unlock()
	return false
}

// owes is engine.Limits.Owes: it tells whether a release of the field is owed, and whether Close waits for it.
func (s *store) owes(field string) (owed, awaited bool) {
	rec, own := s.find(field)
	if rec == nil {
		return !own, !own
	}
	awaited = rec.awaited(s.nodes, s.majority())
	if rec.isGivenUp() {
		return s.drop(field, rec), awaited
	}
	return rec.owed(), awaited
}

// between returns a random time from least to most.
func between(least, most time.Duration) time.Duration {
	return least + rand.N(most-least+1)
}

// counts tells whether the node has answered and counts.
func counts(a *ask) bool { return a.state == answered && a.node.counts(a.report) }

// checkDistinct returns ErrSameServer if two nodes have told the same run id: they are one server. For a node that has not answered
// this round, or was not asked, its latest run id is taken.
func (s *store) checkDistinct(r *round) error {
	runs := make([]string, len(s.nodes))
	for i, n := range s.nodes {
		switch a := r.asks[i]; {
		case a == nil && n.lastTrouble() != nil: // another node may have its address by now
		case a == nil || a.state == pending || a.state == silent:
			runs[i] = n.lastRun()
		case a.state == answered:
			runs[i] = a.report.Run
		}
		if j := slices.Index(runs[:i], runs[i]); j >= 0 && runs[i] != "" {
			return sameServer(s.nodes[j], n)
		}
	}
	return nil
}

// A share is the part of the nodes on which one hold has the lock.
type share struct {
	field string
	ttls  []time.Duration // the leases that are left on these nodes, the longest last
}

// shares returns the shares of all holds by the answers of a round, the largest first.
func shares(r *round) []*share {
	var found []*share
	for a := range r.all {
		if a.state != answered || a.report.Holder == "" || a.node.stranded() != nil {
			continue
		}
		i := slices.IndexFunc(found, func(sh *share) bool { return sh.field == a.report.Holder })
		if i < 0 {
			i, found = len(found), append(found, &share{field: a.report.Holder})
		}
		ttl := a.report.TTL
		if ttl == scripts.NoExpiry {
			ttl = forever
		}
		found[i].ttls = append(found[i].ttls, ttl)
	}
	for _, sh := range found {
		slices.Sort(sh.ttls)
	}
	slices.SortFunc(found, func(a, b *share) int { return len(b.ttls) - len(a.ttls) })
	return found
}

// forever is the rest of a lease without an expiry.
const forever time.Duration = 1<<63 - 1

// lasts returns for how long the hold has at least n nodes, or all of its nodes where these are fewer; NoExpiry where that has no end.
func (sh *share) lasts(n int) time.Duration {
	ttl := sh.ttls[min(max(len(sh.ttls)-n, 0), len(sh.ttls)-1)] // a larger majority may be heard of meanwhile
	if ttl == forever {
		return scripts.NoExpiry
	}
	return ttl
}
