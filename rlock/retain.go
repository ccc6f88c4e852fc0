package rlock

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/fencelock/fencelock/scripts"
	"github.com/fencelock/fencelock/watchdog"
)

// A client whose callers come back for a lock as soon as they have unlocked it retains the lock for the next of them
// while others wait: Unlock passes it to a hold that nobody has yet, in one round trip, and the Lock that follows finds
// it here. Lock managers of cluster file systems do so too, for what they call a minimum hold time. It is a handoff of
// the series like any other, bounded by count and time, only that the next call is not there yet.
//
// The server does it only where others listen for the release; so nobody can tell it from a lock that one of those who
// wait has got. It is for sections so short that the way to another client would take as long; a prediction that was
// wrong costs the others retainFor.

const (
	// retainFor is how long the lock is retained for a call that does not come.
	retainFor = time.Millisecond
	// eager is how many calls in a row came back as soon as that before the lock is retained for another one,
	eager = 3
	// and inVain how many more after one that did not.
	inVain = 16
	// minRetained is the shortest lease of which retainFor may be lost,
	minRetained = 100 * retainFor
	// and maxRetained the longest of a hold that nobody has: the watchdog renews it for whoever takes it.
	maxRetained = 5 * time.Second
)

// A retainer is what a queue knows of calls that come back.
type retainer struct {
	ended time.Time     // when the lock was last unlocked here
	soon  int           // so many calls in a row came soon after that; negative after one that did not come
	trip  time.Duration // how long a release takes
	last  request       // the latest call: the next one is expected to be like it
	next  retained
	ends  int         // holds that nobody came for and that are not released yet: their end is others' turn first
	guard *time.Timer // sees to it that next is not retained for long; nil while it is not set
}

// A retained lock is one that this client has, and no holder.
type retained struct {
	hold    *hold // the next one; nil if nothing is retained
	sent    watchdog.Instant
	since   time.Time
	heard   int64 // messages, until the lock was passed to it
	request request
}

// successor returns the hold for which the lock is to be retained when h ends, and the call that it is for; nil if it is to
// be released.
func (q *queue) successor(h *hold) (*hold, request) {
	q.mu.Lock()
	defer q.mu.Unlock()
	c, t := q.client, q.turns
	if t == nil || t.others == 0 || q.first != nil || q.hold != h || !c.retains || isClosed(c.draining) {
		return nil, request{}
	}
	r := &t.back
	if q.sub == nil || !q.sub.Live() { // it would not hear that what it retained is forced open
		return nil, request{}
	}
	// The hold's command took one trip; what is left is the section.
	if long := h.lease.Deadline().Age() > r.trip*9/4; long || r.soon < eager || q.series.handoffs >= c.handoffs/2 {
		return nil, request{}
	}
	lease := r.last.lease
	if r.last.kept {
		lease = min(lease, maxRetained)
	} else if lease < minRetained || lease > c.lease {
		return nil, request{}
	}
	if !q.more() {
		return nil, request{}
	}
	next := &hold{client: c, queue: q}
	next.trace = &next.own
	next.own.keys, next.own.field, next.own.lease = h.trace.keys, c.field(), lease
	return next, r.last
}

// retain passes the lock on to next, or releases it where nobody else listens. doubt: perhaps it did one of them.
func (h *hold) retain(next *hold, r request, within time.Duration) (done, doubt bool) {
	c, q, began := h.client, h.queue, time.Now()
	b := c.bell()
	defer c.hang(b)
	known, before := q.listeners()
	k := c.newCall(r.counted(scripts.Retain(next.own.keys, r.fenced, next.own.field, next.own.lease, h.trace.field, known)), next.trace, b)
	c.send(k)
	if !k.within(b, began, within, nil) {
		c.withdraw(k)
	}
	if !k.over.Load() {
		c.releaser.release(next.trace)
		return false, true
	}
	answer, err := k.answer, k.err
	sent := k.sent
	if err != errNotSent { // the line has it still
		c.reuse(k)
	}
	switch {
	case answer.Held:
		h.unlocked()
		if !q.retain(h, retained{hold: next, sent: sent, request: r, heard: before}, answer.Token, began) {
			next.giveUp(2 * within) // the rest of the Unlock's time
		}
		return true, false
	case answer.Released:
		h.unlocked()
		c.told(answer, h.trace.keys)
		q.released(answer.Receivers, before, began)
		return true, false
	}
	if next.own.open() {
		c.releaser.release(next.trace)
	}
	if err == errNotSent {
		return false, false
	}
	q.mu.Lock()
	q.turns.back.soon = -inVain // Redis may refuse it again
	q.mu.Unlock()
	return false, err != nil && scripts.Unanswered(err)
}

// listeners is how many of those who hear of a release are this client, and how many messages it has heard.
func (q *queue) listeners() (known int, heard int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.sub != nil && q.sub.Live() {
		known = 1
	}
	return known, q.messages.Load()
}

// retain keeps what came after h, with this token, where the next call finds it; false where none may come any more, or
// it is gone.
func (q *queue) retain(h *hold, r retained, token int64, began time.Time) bool {
	r.hold.token = token
	if token != 0 {
		r.hold.block = &block{next: token, last: token} // so that it is given back if nobody comes
	}
	q.mu.Lock()
	now := time.Now()
	if q.hold == h {
		q.hold = nil
		q.unfollow()
	}
	t := &q.turns.back
	t.ended, t.trip = now, (3*t.trip+now.Sub(began))/4
	r.since = now
	goesOn := !isClosed(q.client.closed) && !q.wasForced(r.hold.own.field, r.sent)
	if !goesOn {
		t.ends++
	} else {
		t.next = r
		if t.guard == nil {
			q.again()
			t.guard = time.AfterFunc(retainFor, q.guard)
		}
	}
	waits := q.first != nil
	q.mu.Unlock()
	if goesOn && waits {
		q.nudge()
	}
	return goesOn
}

// guard gives up what nobody has come for. It is set once for many locks that were retained one after the other.
func (q *queue) guard() {
	q.mu.Lock()
	t := &q.turns.back
	if left := retainFor - time.Since(t.next.since); t.next.hold != nil && left > 0 {
		t.guard.Reset(left)
		q.mu.Unlock()
		return
	}
	t.guard = nil
	h := q.forget("")
	if h != nil && q.first == nil {
		t.soon = -inVain
	}
	q.mu.Unlock()
	if h != nil {
		h.giveUp(q.client.unlockTimeout)
	}
	q.done()
}

// forget takes out what was retained in this field, and returns it, or nil. An empty one stands for any. With q.mu held.
func (q *queue) forget(field string) *hold {
	if q.turns == nil {
		return nil
	}
	t := &q.turns.back
	h := t.next.hold
	if h == nil || field != "" && field != h.own.field {
		return nil
	}
	t.next = retained{}
	t.ends++
	return h
}

// giveUp releases a hold that was forgotten.
func (h *hold) giveUp(within time.Duration) {
	_ = h.free(time.Now(), within, false) // what is not confirmed is released behind
	h.queue.forgot()
}

// forgot is the end of what was forgotten.
func (q *queue) forgot() {
	q.mu.Lock()
	q.turns.back.ends--
	q.quiet()
	q.mu.Unlock()
	q.nudge()
}

// ours tells whether the lock is this client's, as far as it knows.
func (q *queue) ours() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.hold != nil || q.turns != nil && q.turns.back.ends > 0
}

// returns notes that a call begins, and gives it what was retained, if it suits; a call that does not wait is to give up
// what does not. Where others are in line they are first.
func (q *queue) returns(a *acquisition) (r retained, other *hold) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.turns == nil || q.first != nil {
		return r, nil
	}
	if t := &q.turns.back; q.hold == nil {
		t.last = a.request
		if a.began.Sub(t.ended) < retainFor {
			t.soon = min(t.soon+1, eager)
		} else {
			t.soon = min(t.soon, 0)
		}
	}
	if r = q.retaken(a); r.hold == nil && !a.waits() { // others wait until it is given up
		other = q.forget("")
	}
	return r, other
}

// retaken is what was retained, if it suits the call, and there is no sign that it is gone, such as another hold of the
// client's. With q.mu held.
func (q *queue) retaken(a *acquisition) (r retained) {
	if q.turns == nil || q.turns.back.next.hold == nil || q.hold != nil {
		return r
	}
	next := &q.turns.back.next
	if !next.request.like(a.request) || next.heard != q.messages.Load() || time.Since(next.since) > 2*retainFor ||
		watchdog.DeadlineOf(next.sent, next.hold.own.lease/3).Passed() {
		return r
	}
	r, *next = *next, retained{}
	return r
}

// like tells whether a hold for the one would do for the other.
func (r request) like(other request) bool {
	return r.fenced == other.fenced && r.floor == other.floor && r.expiry == other.expiry && r.kept == other.kept && r.lease == other.lease
}

// forget gives up all that is retained.
func (c *Client) forget() {
	c.mu.Lock()
	queues := slices.Collect(maps.Values(c.queues))
	for _, q := range queues {
		q.uses++ // until what it had is released
	}
	c.mu.Unlock()
	var all sync.WaitGroup
	for _, q := range queues {
		q.mu.Lock()
		h := q.forget("")
		q.mu.Unlock()
		if h == nil {
			q.done()
			continue
		}
		all.Go(func() {
			h.giveUp(c.unlockTimeout)
			q.done()
		})
	}
	all.Wait()
}

// giveUp gives up what was retained for a call of another kind, so that this one does not find the lock taken by nobody.
func (a *acquisition) giveUp(other *hold) {
	done, within := make(chan struct{}), a.client.unlockTimeout
	go func() { // without a, which is used again
		other.giveUp(within)
		close(done)
	}()
	select {
	case <-done:
	case <-a.end:
	}
}

// retake makes a hold of the caller's own of what was retained.
func (a *acquisition) retake(r retained) (*level, error) {
	if a.trace != nil && a.trace.open() {
		a.client.releaser.release(a.trace) // an attempt of its own, from before, has got no answer
	}
	h := r.hold
	lease := h.own.lease
	h.own.longer(a.lease)
	h.queue = nil // unless it becomes one of the client's
	a.fresh, a.trace = h, h.trace
	lv, _, err := a.hold(r.sent, lease, h.token, nil, false)
	if lv == nil {
		a.queue.mu.Lock()
		a.queue.quiet()
		a.queue.mu.Unlock()
		if a.bound.Err() != nil {
			err = a.gaveUp()
		}
	}
	return lv, err
}
