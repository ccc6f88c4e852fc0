package rlock

import (
	"container/heap"
	"context"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/scripts"
)

// A releaser sends the releases that nobody waits for: of holds whose release, or one of whose acquires, got no answer.
// Each release is sent again until one lease has passed since the last attempt to acquire ended: what the attempt has
// taken has then been released, or has expired by itself. Releases travel in company with other operations, and no
// goroutine waits for one.
type releaser struct {
	client *Client

	mu     sync.Mutex
	open   releases    // all of them, the one that is due first at the front
	alarm  *time.Timer // calls send when that is due; nil before there was any
	closed bool
}

// A release is one hold's place in the releaser, which guards its fields.
type release struct {
	releaser *releaser
	trace    *trace
	lease    time.Duration
	index    int       // in releaser.open; -1: it is over
	due      time.Time // when to send it, again if it is under way
	n        int       // how often it was answered
	sending  *sending  // under way; nil if none is, or its answer is not waited for any longer
	rest     bool      // most of several servers have confirmed it already
	freed    bool      // a final one was confirmed; of a rest: was answered
	owed     bool      // one of several servers may have the hold still
	refused  bool      // Redis has refused it for good: rights are missing
}

// A sending is one command that releases the hold. Its fields are guarded by the releaser's mu.
type sending struct {
	*release
	op    scripts.Op
	given bool // to the store: it may be withdrawn
	left  bool // it was written
	final bool // and all attempts to acquire had an outcome by then
}

// releaseAfter is when an unconfirmed release is sent again; then every third of the lease, and where that is long, every
// lastRelease.
var releaseAfter = []time.Duration{0, 100 * time.Millisecond, time.Second, 3 * time.Second, 10 * time.Second}

const (
	lastRelease = 30 * time.Second
	// retryRelease is the longest time between two sendings while Redis answers none.
	retryRelease = time.Second
)

// after is how long after the release before the release number n is sent.
func (r *release) after(n int) time.Duration {
	after := min(max(r.lease/3, time.Millisecond), lastRelease)
	if n < len(releaseAfter) {
		after = min(after, releaseAfter[n])
	}
	return after
}

// release takes over the release of the hold.
func (b *releaser) release(t *trace) { b.take(&release{releaser: b, trace: t}) }

// abandon takes over what a call has tried to take that does not wait for it any longer. While an attempt is under way
// its answer is waited for, as most attempts take nothing, or are answered soon; but not for long: the release may be
// faster on another connection.
func (b *releaser) abandon(t *trace) {
	n := 0
	if !t.answered() {
		n = 1
	}
	b.take(&release{releaser: b, trace: t, n: n})
}

// rest takes over what is left of a release that most of several servers have confirmed.
func (b *releaser) rest(t *trace) {
	t.released()
	b.take(&release{releaser: b, trace: t, n: 1, rest: true, owed: true})
}

func (b *releaser) take(r *release) {
	t, n := r.trace, r.n
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		if !r.rest {
			b.complain(1, t)
		}
		return
	}
	var ok bool
	if r.lease, ok = t.hand(r); ok {
		r.due = time.Now().Add(r.after(n))
		heap.Push(&b.open, r)
		b.arm()
	}
}

// attempted is called when an attempt to acquire the hold has got its outcome.
func (r *release) attempted() {
	b := r.releaser
	b.mu.Lock()
	defer b.mu.Unlock()
	if r.index >= 0 && r.sending == nil {
		b.plan(r, 0)
	}
}

// plan makes the release due after d, or drops it if nothing is left to release. With b.mu held.
func (b *releaser) plan(r *release, d time.Duration) {
	if !r.matters() {
		b.drop(r)
		return
	}
	r.due = time.Now().Add(d)
	heap.Fix(&b.open, r.index)
	b.arm()
}

func (r *release) matters() bool { return r.owed || r.trace.open() }

// drop takes the release off the list. With b.mu held.
func (b *releaser) drop(r *release) {
	heap.Remove(&b.open, r.index)
	r.trace.dropped()
}

// arm sets the alarm for the release that is due first. With b.mu held.
func (b *releaser) arm() {
	if len(b.open) == 0 {
		return
	}
	after := max(time.Until(b.open[0].due), 1) // not 0: in a synctest bubble Go 1.26 runs such a timer at once, and may crash with -race
	if b.alarm == nil {
		b.alarm = time.AfterFunc(after, b.send)
	} else {
		b.alarm.Reset(after)
	}
}

// send sends the releases that are due.
func (b *releaser) send() {
	ctx, cancel := context.WithTimeout(context.Background(), b.client.unlockTimeout)
	sharded := b.client.bus.Sharded(ctx)
	cancel()
	for _, s := range b.taken(sharded) {
		b.client.store.Send(&s.op, s)
		b.mu.Lock()
		s.given = true
		b.mu.Unlock()
	}
}

// taken returns what is to be sent now.
func (b *releaser) taken(sharded bool) (due []*sending) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	for !b.closed && len(b.open) > 0 && !b.open[0].due.After(now) {
		r := b.open[0]
		inLine := r.sending != nil && !r.sending.left
		if !r.matters() && (!inLine || r.sending.given && b.client.store.Withdraw(&r.sending.op)) {
			b.drop(r)
			continue
		}
		if !inLine {
			r.sending = &sending{release: r, op: b.client.calling(scripts.Unlock(r.trace.keys, r.trace.field, sharded), "", 0)}
			due = append(due, r.sending)
		}
		r.due = now.Add(max(r.lease/3, 100*time.Millisecond))
		heap.Fix(&b.open, 0)
	}
	b.arm()
	return due
}

// Sending implements scripts.Caller.
func (s *sending) Sending(scripts.Caller) {
	s.releaser.mu.Lock()
	defer s.releaser.mu.Unlock()
	s.left, s.final = true, s.trace.answered()
}

// Answered implements scripts.Caller.
func (s *sending) Answered(a scripts.Answer, err error) {
	r, b := s.release, s.releaser
	b.client.told(a, s.trace.keys)
	b.mu.Lock()
	defer b.mu.Unlock()
	if (err == nil || redis.HasErrorPrefix(err, "WRONGTYPE")) && !a.Owed && s.final { // no hash has no hold in it
		r.trace.released()
		r.freed = true
	}
	r.freed = r.freed || r.rest
	r.refused = scripts.Refused(err) && !scripts.Passing(err)
	if r.index < 0 || r.sending != s {
		return
	}
	r.sending, r.owed = nil, a.Owed
	r.n++
	after := r.after(r.n)
	if err != nil && !r.refused {
		after = min(after, retryRelease) // the repeats are for what arrives late at a Redis that answers
		r.n = min(r.n, 2)
	}
	b.plan(r, after)
}

// hurry sends at once what is not known to be freed, whenever it is due.
func (b *releaser) hurry() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, r := range b.open {
		if r.sending == nil && r.trace.answered() && b.owes(r) {
			r.due = time.Time{}
		}
	}
	heap.Init(&b.open)
	b.arm()
}

// owing tells whether anything may be taken that no release has freed, and one still may.
func (b *releaser) owing() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, r := range b.open {
		if b.owes(r) && !r.refused {
			return true
		}
	}
	return false
}

// owes tells whether the hold may be taken still. With b.mu held.
func (b *releaser) owes(r *release) bool {
	if r.freed && !r.trace.owed() {
		return false
	}
	// All of several servers may have said by now that they have not got the hold.
	return b.client.owes == nil || b.client.owes(r.trace.field)
}

// close drops what is left, and says so.
func (b *releaser) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	if b.alarm != nil {
		b.alarm.Stop()
	}
	owed := 0
	var one *trace
	for _, r := range b.open {
		if b.owes(r) {
			owed, one = owed+1, r.trace
		}
		r.index = -1
		r.trace.dropped()
	}
	b.open = nil
	if owed > 0 {
		b.complain(owed, one)
	}
}

func (b *releaser) complain(locks int, one *trace) {
	b.client.log.Warn("rlock: closed before a release was confirmed; the lock is free at the end of its lease", "lock", one.keys.Lock, "locks", locks)
}

// releases is a heap.Interface by the time at which they are due.
type releases []*release

func (h releases) Len() int           { return len(h) }
func (h releases) Less(i, j int) bool { return h[i].due.Before(h[j].due) }
func (h releases) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

func (h *releases) Push(x any) {
	r := x.(*release)
	r.index = len(*h)
	*h = append(*h, r)
}

func (h *releases) Pop() any {
	old := *h
	r := old[len(old)-1]
	old[len(old)-1] = nil
	r.index = -1
	*h = old[:len(old)-1]
	return r
}
