package quorum

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fencelock/fencelock/internal/seam"
	"github.com/fencelock/fencelock/scripts"
)

// store is the nodes as a seam.Store.
type store struct {
	nodes   []*node
	sorted  []*node       // by name
	most    int           // of the nodes, a majority
	timeout time.Duration // of one node
	retry   [2]time.Duration
	delay   time.Duration          // so long after its start a node counts
	owner   atomic.Pointer[string] // what the fields of this client begin with

	mu      sync.Mutex
	ballots map[string]*ballot // by field
	sweepAt int                // so many ballots
	rivals  map[string]*rivals // by lock

	sweepRivalsAt int
}

var _ seam.Store = (*store)(nil)

// keep is what is added to a lease on the nodes: with the client's margin of 1 ms and one percent it makes Redlock's
// drift of 2 ms and one percent.
const keep = time.Millisecond

// within is the time that one node has for an operation with this lease.
func (s *store) within(lease time.Duration) time.Duration {
	if lease == 0 {
		return s.timeout
	}
	return max(min(s.timeout, lease/8), time.Millisecond)
}

// Send implements seam.Store. The operation leaves at once.
func (s *store) Send(op *scripts.Op, caller scripts.Caller) {
	order := op.Order()
	caller.Sending(nil)
	s.do(order, caller.Answered)
}

// Withdraw implements seam.Store: it is too late.
func (s *store) Withdraw(*scripts.Op) bool { return false }

// Do implements seam.Store. It takes no longer than the nodes have.
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

// Renew implements seam.Store.
func (s *store) Renew(_ context.Context, holds []scripts.Renewal) {
	var all sync.WaitGroup
	all.Add(len(holds))
	for i := range holds {
		h := &holds[i]
		s.extend(h.Keys, h.Field, h.Lease, func(err error) {
			h.Err = err
			all.Done()
		})
	}
	all.Wait()
}

func (s *store) do(o scripts.Order, done func(scripts.Answer, error)) {
	switch o.Verb {
	case scripts.ToAcquire:
		s.acquire(o, done)
	case scripts.ToLevel:
		s.level(o, done)
	case scripts.ToUnlock:
		s.release(o, done)
	default:
		panic("quorum: an operation for one server") // handoffs and token blocks are off
	}
}

// ballot returns the ballot of a field, made if need be.
func (s *store) ballot(field string) *ballot {
	if s.owner.Load() == nil {
		id, _, _ := strings.Cut(field, ":")
		s.owner.Store(&id)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.ballots[field]
	if b == nil {
		if len(s.ballots) >= s.sweepAt {
			s.sweep()
		}
		b = &ballot{began: time.Now(), marks: make([]mark, len(s.nodes))}
		s.ballots[field] = b
	}
	return b
}

// minSweep is the least number of ballots that is worth a look.
const minSweep = 64

// sweep drops the ballots of holds that were lost, and never unlocked. With s.mu held.
func (s *store) sweep() {
	now := time.Now()
	for field, b := range s.ballots {
		if b.expired(now) {
			delete(s.ballots, field)
		}
	}
	s.sweepAt = max(minSweep, 2*len(s.ballots))
}

// find returns the ballot of a field. nil, own: it is one of this client's, and nothing is owed.
func (s *store) find(field string) (b *ballot, own bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id, _, _ := strings.Cut(field, ":")
	owner := s.owner.Load()
	return s.ballots[field], owner != nil && *owner == id
}

// drop forgets a ballot if nothing is owed.
func (s *store) drop(field string, b *ballot) (owed bool) {
	if b.owed() {
		return true
	}
	s.mu.Lock()
	if s.ballots[field] == b {
		delete(s.ballots, field)
	}
	s.mu.Unlock()
	return false
}

// owes implements seam.Parts.
func (s *store) owes(field string) bool {
	b, own := s.find(field)
	return b != nil && b.owed() || b == nil && !own
}

func between(least, most time.Duration) time.Duration {
	return least + rand.N(most-least+1)
}

// counts tells whether an answer counts.
func counts(a *ask) bool { return a.state == answered && a.node.counts(a.report) }

// twins returns ErrSameServer if two nodes are one server, as far as they have said.
func (s *store) twins(r *round) error {
	seen := make(map[string]*node, len(s.nodes))
	for a := range r.all {
		var run string
		switch a.state {
		case answered:
			run = a.report.Run
		case pending, silent:
			run = a.node.lastRun()
		}
		if run == "" {
			continue
		}
		if n := seen[run]; n != nil {
			return sameServer(n, a.node)
		}
		seen[run] = a.node
	}
	return nil
}

// A grip is the part of the nodes that one hold has.
type grip struct {
	field string
	ttls  []time.Duration // longest last
}

// grips returns who has the lock where, as the answers of a round say, whoever has most first.
func grips(r *round) []*grip {
	var found []*grip
	for a := range r.all {
		if a.state != answered || a.report.Holder == "" {
			continue
		}
		i := slices.IndexFunc(found, func(g *grip) bool { return g.field == a.report.Holder })
		if i < 0 {
			i, found = len(found), append(found, &grip{field: a.report.Holder})
		}
		ttl := a.report.TTL
		if ttl == scripts.NoExpiry {
			ttl = forever
		}
		found[i].ttls = append(found[i].ttls, ttl)
	}
	for _, g := range found {
		slices.Sort(g.ttls)
	}
	slices.SortFunc(found, func(a, b *grip) int { return len(b.ttls) - len(a.ttls) })
	return found
}

// sooner is the shorter of a lease that is left, which may be without end, and a pause.
func sooner(ttl, pause time.Duration) time.Duration {
	if pause != forever && (ttl == scripts.NoExpiry || ttl > pause) {
		return pause
	}
	return ttl
}

const forever time.Duration = 1<<63 - 1

// lasts is for how long the hold has at least n nodes.
func (g *grip) lasts(n int) time.Duration {
	ttl := g.ttls[len(g.ttls)-n]
	if ttl == forever {
		return scripts.NoExpiry
	}
	return ttl
}
