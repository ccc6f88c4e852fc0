package engine

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fencelock/fencelock/observe/locktrace"
	"github.com/fencelock/fencelock/watchdog"
)

// tracedHolds has the numbers and the ages of a client's open holds, for the trace and for WithPresence. It is empty where the client has
// neither (tellsOfHolds), which is why a hold has no fields for this.
type tracedHolds struct {
	mu    sync.Mutex
	holds map[*hold]tracedHold
}

type tracedHold struct {
	number  uint64 // of this process's holds
	began   time.Time
	dropped bool // the holder is garbage
}

// lastTraced is the number of the latest hold that is traced.
var lastTraced atomic.Uint64

// begin keeps the hold until take, and returns its number.
func (th *tracedHolds) begin(h *hold) uint64 {
	th.mu.Lock()
	defer th.mu.Unlock()
	if th.holds == nil {
		th.holds = make(map[*hold]tracedHold)
	}
	t := tracedHold{number: lastTraced.Add(1), began: time.Now()}
	th.holds[h] = t
	return t.number
}

// drop notes that the hold's holder is garbage, if the hold is traced.
func (th *tracedHolds) drop(h *hold) {
	th.mu.Lock()
	defer th.mu.Unlock()
	if t, is := th.holds[h]; is {
		t.dropped = true
		th.holds[h] = t
	}
}

// age is how old the hold is at this time; 0 where it has ended.
func (th *tracedHolds) age(h *hold, now time.Time) time.Duration {
	th.mu.Lock()
	defer th.mu.Unlock()
	if t, is := th.holds[h]; is {
		return now.Sub(t.began)
	}
	return 0
}

// number is the hold's number; 0 where the hold has ended.
func (th *tracedHolds) number(h *hold) uint64 {
	th.mu.Lock()
	defer th.mu.Unlock()
	return th.holds[h].number
}

// take forgets the hold, and returns what was kept; false where it was taken before.
func (th *tracedHolds) take(h *hold) (t tracedHold, is bool) {
	th.mu.Lock()
	defer th.mu.Unlock()
	t, is = th.holds[h]
	delete(th.holds, h)
	return t, is
}

// tellsOfHolds tells whether tracedHolds is used.
func (c *Client) tellsOfHolds() bool {
	t := c.set.Trace
	return c.presenter != nil || t != nil && (t.AcquireDone != nil || t.HoldDone != nil || t.RenewalDone != nil)
}

// call is the acquiring call, for an event.
func (w *waiter) call() locktrace.Call {
	return locktrace.Call{Context: w.ctx, Client: w.client.id, Lock: w.name, Began: w.began, MayWait: w.request.waits()}
}

// waitStarted notes, and tells the trace once, that the call waits for other holders.
func (w *waiter) waitStarted() {
	if w.contended {
		return
	}
	w.contended = true
	if t := w.client.set.Trace; t != nil && t.WaitStarted != nil {
		t.WaitStarted(locktrace.WaitStarted{Call: w.call()})
	}
}

// acquireDone tells the trace how the call has ended.
func (w *waiter) acquireDone(lv *level, err error) {
	t := w.client.set.Trace
	if t == nil || t.AcquireDone == nil {
		return
	}
	e := locktrace.AcquireDone{Call: w.call(), Took: time.Since(w.began), Contended: w.contended, Attempts: w.attemptCount, Err: err}
	if err == nil {
		e.By, e.Hold, e.Field, e.Token = w.way, w.holdNumber, lv.hold.attempts.field, lv.token
	}
	t.AcquireDone(e)
}

// holdDone tells the trace, once, that the hold has ended at this time, and why. It is called with no lock held.
func (h *hold) holdDone(at time.Time, end locktrace.End, err error) {
	if !h.client.tellsOfHolds() {
		return
	}
	traced, is := h.client.tracedHolds.take(h)
	t := h.client.set.Trace
	if !is || t == nil || t.HoldDone == nil {
		return
	}
	if end == locktrace.Lost && traced.dropped {
		end = locktrace.Dropped
	}
	h.mu.Lock()
	token := h.token
	h.mu.Unlock()
	t.HoldDone(locktrace.HoldDone{
		Client: h.client.id, Lock: h.attempts.keys.Lock, Hold: traced.number, Field: h.attempts.field, Token: token,
		Began: traced.began, Held: at.Sub(traced.began), End: end, Err: err,
	})
}

// unlocked tells the trace of a hold whose last level was closed at this time, with this outcome.
func (h *hold) unlocked(at time.Time, err error) {
	end := locktrace.Unlocked
	if errors.Is(err, ErrLost) {
		end = locktrace.Lost
	}
	h.holdDone(at, end, err)
}

// renewalDone tells the trace of a round trip of the watchdog that began at this time.
func (c *Client) renewalDone(batch []watchdog.Renewal, outcome []error, began time.Time) {
	if isClosed(c.closed) {
		return // its renewals were ended
	}
	e := locktrace.RenewalDone{Client: c.id, Took: time.Since(began)}
	for i, r := range batch {
		h := r.Owner.(*hold)
		if r.Length > 0 { // otherwise Redis was only asked whether the hold is there
			if left := h.remaining(began) - e.Took; e.Locks == 0 || left < e.Margin {
				e.Margin, e.Lease = left, r.Length
			}
			e.Locks++
		}
		switch {
		case outcome == nil || outcome[i] == nil:
		case errors.Is(outcome[i], watchdog.ErrGone):
			if c.tracedHolds.number(h) != 0 { // otherwise its holder has just unlocked it
				e.Gone++
			}
		case r.Length > 0:
			e.Failed++
			e.LastLock, e.Err = h.attempts.keys.Lock, outcome[i]
		}
	}
	if e.Locks > 0 || e.Gone > 0 {
		c.set.Trace.RenewalDone(e)
	}
}

// tellAll tells the trace the events of releases, in their order, until there are none.
func (rl *releaser) tellAll() {
	t := rl.client.set.Trace
	for {
		rl.mu.Lock()
		if len(rl.events) == 0 {
			rl.telling = false
			rl.mu.Unlock()
			return
		}
		r := rl.events[0]
		rl.events = rl.events[1:]
		rl.mu.Unlock()
		a := r.attempts
		switch {
		case !r.over && t.ReleaseDelayed != nil:
			t.ReleaseDelayed(locktrace.ReleaseDelayed{Client: rl.client.id, Lock: a.keys.Lock, Field: a.field})
		case r.over && t.ReleaseEnded != nil:
			t.ReleaseEnded(locktrace.ReleaseEnded{Client: rl.client.id, Lock: a.keys.Lock, Field: a.field, Took: time.Since(r.began), Confirmed: r.confirmed})
		}
	}
}

// A releaseEvent is an event that the trace is still to be told: a release was delayed, or is over.
type releaseEvent struct {
	*release
	over      bool
	confirmed bool // by Redis, or nothing was taken; once it is over
}

// note has the trace told that the release was delayed, or is over. Another goroutine tells it: note also runs where a batch gives its
// callers their answers, and the others of them are not to wait for the trace. With rl.mu held.
func (rl *releaser) note(r *release, over bool) {
	if t := rl.client.set.Trace; r.asks || t == nil || t.ReleaseDelayed == nil && t.ReleaseEnded == nil {
		return
	}
	rl.events = append(rl.events, releaseEvent{r, over, r.freed || !r.attempts.mayBeTaken()})
	if !rl.telling {
		rl.telling = true
		go rl.tellAll()
	}
}

// SubscriptionChanged tells the trace that a connection on which the client listens is up, or is down.
func (c *Client) SubscriptionChanged(node string, up bool) {
	if t := c.set.Trace; t != nil && t.SubscriptionChanged != nil {
		t.SubscriptionChanged(locktrace.SubscriptionChanged{Client: c.id, Node: node, Up: up})
	}
}
