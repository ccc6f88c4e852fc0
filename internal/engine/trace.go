package engine

import (
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fencelock/fencelock/internal/command"
	"github.com/fencelock/fencelock/internal/holder"
	"github.com/fencelock/fencelock/observe/locktrace"
	"github.com/fencelock/fencelock/watchdog"
)

// tracedHolds has the numbers and the ages of a client's open holds, for the trace and for
// WithPresence. It is empty where the client has neither (tellsOfHolds), which is why a hold has no
// fields for this.
type tracedHolds struct {
	mu    sync.Mutex
	holds map[*hold]tracedHold
}

type tracedHold struct {
	number  uint64 // of this process's holds
	began   time.Time
	lasting string // of rlock.Lasting
	dropped bool   // the holder is garbage
}

// lastTraced is the number of the latest hold that is traced.
var lastTraced atomic.Uint64

// begin keeps the hold, with its word of rlock.Lasting, until take, and returns its number.
func (th *tracedHolds) begin(h *hold, lasting string) uint64 {
	th.mu.Lock()
	defer th.mu.Unlock()
	if th.holds == nil {
		th.holds = make(map[*hold]tracedHold)
	}
	t := tracedHold{number: lastTraced.Add(1), began: time.Now(), lasting: lasting}
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

// age is how old the hold is at this time, and its word of rlock.Lasting; 0 where it has ended.
func (th *tracedHolds) age(h *hold, now time.Time) (age time.Duration, lasting string) {
	th.mu.Lock()
	defer th.mu.Unlock()
	if t, is := th.holds[h]; is {
		return now.Sub(t.began), t.lasting
	}
	return 0, ""
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
	return locktrace.Call{Context: w.ctx, Client: w.client.id, Lock: w.id.Name, Began: w.began, MayWait: w.request.waits(), Lasting: w.request.Lasting}
}

// A traced is what the trace is told of one acquiring call.
type traced struct {
	contended  bool        // the call has waited for other holders
	told       *toldOfWait // by which the trace is told of that; nil for none
	way        locktrace.Way
	holdNumber uint64 // 0 without a trace
}

// waitStarted notes, and has the trace told once, that the call waits for other holders. The
// function runs beside the wait: the other waiters of the queue may depend on this one.
func (w *waiter) waitStarted() {
	if w.contended {
		return
	}
	w.contended = true
	t := w.client.set.Trace
	if t == nil || t.WaitStarted == nil {
		return
	}
	call, wake, told := w.call(), w.wakeup, new(toldOfWait)
	w.told = told
	go func() {
		returned := false
		defer func() { told.end(returned, recover(), wake) }()
		t.WaitStarted(locktrace.WaitStarted{Call: call})
		returned = true
	}()
}

// toldOfWait is the call of the trace's WaitStarted for one acquiring call. Where the function
// panics, or ends its goroutine, before the acquiring call has ended, that ends in the same way.
type toldOfWait struct {
	mu       sync.Mutex
	ended    bool
	brokeOff bool
	panicked any    // with what; nil after runtime.Goexit
	then     func() // tells of the end of the acquiring call, which came first
}

// end notes how the function has ended, on its goroutine.
func (t *toldOfWait) end(returned bool, panicked any, wake *command.Wakeup) {
	t.mu.Lock()
	then := t.then
	t.ended, t.brokeOff, t.panicked = true, !returned && then == nil, panicked
	t.mu.Unlock()
	switch {
	case then != nil && panicked != nil:
		panic(panicked)
	case then != nil:
		then()
	case !returned:
		wake.Notify()
	}
}

// brokenOff tells whether the acquiring call is to end because the function has not returned.
func (t *toldOfWait) brokenOff() bool {
	if t == nil {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.brokeOff
}

// breakOff ends the caller's goroutine as the function has ended its own.
func (t *toldOfWait) breakOff() {
	if t.panicked == nil {
		runtime.Goexit()
	}
	panic(t.panicked)
}

// acquireDone tells the trace of the end of the acquiring call, after what tells of its wait.
func (t *toldOfWait) acquireDone(trace *locktrace.Trace, e locktrace.AcquireDone) {
	t.mu.Lock()
	ended := t.ended
	if !ended {
		t.then = func() { trace.AcquireDone(e) }
	}
	t.mu.Unlock()
	if ended {
		trace.AcquireDone(e)
	}
}

// errBrokenOff ends the wait of a call that ends with breakOff.
var errBrokenOff = errors.New("broken off by the trace's WaitStarted")

// acquireDone tells the trace how the call has ended. What that has taken is released where the
// function panics, or ends the goroutine.
func (w *waiter) acquireDone(lv *holder.Level, err error) {
	t := w.client.set.Trace
	if t == nil || t.AcquireDone == nil {
		return
	}
	e := locktrace.AcquireDone{Call: w.call(), Took: time.Since(w.began), Contended: w.contended, Attempts: w.attemptCount, Err: err}
	if err == nil {
		h := holdOfLevel(lv)
		e.By, e.Hold, e.Field, e.Token, e.Slot = w.way, w.holdNumber, h.attempts.Field, lv.Token, h.slotName()
	}
	returned := false
	defer func() {
		if !returned && err == nil {
			_ = w.Unlock(lv.Context(w.under, w.holder))
		}
	}()
	if w.told != nil {
		w.told.acquireDone(t, e)
	} else {
		t.AcquireDone(e)
	}
	returned = true
}

// done is the event of a hold that has ended at this time, and why; false where the trace is not to
// be told, or was told before.
func (h *hold) done(at time.Time, end locktrace.End, err error) (e locktrace.HoldDone, is bool) {
	if !h.lockState.client.tellsOfHolds() {
		return e, false
	}
	traced, is := h.lockState.client.tracedHolds.take(h)
	t := h.lockState.client.set.Trace
	if !is || t == nil || t.HoldDone == nil {
		return e, false
	}
	if end == locktrace.Lost && traced.dropped {
		end = locktrace.Dropped
	}
	return locktrace.HoldDone{
		Client: h.lockState.client.id, Lock: h.attempts.Keys.Lock, Hold: traced.number, Field: h.attempts.Field, Token: h.Token(), Slot: h.slotName(), Lasting: traced.lasting,
		Began: traced.began, Held: at.Sub(traced.began), End: end, Err: err, ContextErr: h.OuterContextError(),
	}, true
}

// tellDone has the trace told, once, that the hold has ended at this time, and why.
func (h *hold) tellDone(at time.Time, end locktrace.End, err error) {
	if e, is := h.done(at, end, err); is {
		h.lockState.client.tellHoldDone(e)
	}
}

// tellHoldDone has the trace told of the hold. It is a function of its own so that the event of an
// Unlock needs no memory.
func (c *Client) tellHoldDone(e locktrace.HoldDone) { c.tell(func() { c.set.Trace.HoldDone(e) }) }

// tell has a function of the trace called by the outbox: a renewal, a subscription or the queue
// depends on the goroutine that has something to tell.
func (c *Client) tell(call func()) {
	if !c.events.Add(call) {
		c.set.Log.Warn("rlock: a function of the trace does not return: events are left out")
	}
}

// unlocked tells the trace of a hold whose last level was closed at this time, with this outcome.
func (h *hold) unlocked(at time.Time, err error) {
	end := locktrace.Unlocked
	if errors.Is(err, ErrLost) {
		end = locktrace.Lost
	}
	h.tellDoneNow(at, end, err)
}

// tellDoneNow is tellDone on the goroutine of the user's own call, with no lock held.
func (h *hold) tellDoneNow(at time.Time, end locktrace.End, err error) {
	if e, is := h.done(at, end, err); is {
		h.lockState.client.set.Trace.HoldDone(e)
	}
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
			e.LastLock, e.Err = h.lock.keys.Lock, outcome[i]
		}
	}
	if e.Locks > 0 || e.Gone > 0 {
		c.tell(func() { c.set.Trace.RenewalDone(e) })
	}
}

// SubscriptionChanged tells the trace that a connection on which the client listens is up, or is
// down.
func (c *Client) SubscriptionChanged(node string, up bool) {
	if t := c.set.Trace; t != nil && t.SubscriptionChanged != nil {
		c.tell(func() { t.SubscriptionChanged(locktrace.SubscriptionChanged{Client: c.id, Node: node, Up: up}) })
	}
}
