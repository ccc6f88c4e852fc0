package engine

import (
	"sync/atomic"
	"time"

	"github.com/fencelock/fencelock/internal/command"
	"github.com/fencelock/fencelock/internal/holder"
	"github.com/fencelock/fencelock/internal/room"
)

// calls are those of the room's queue, and who waits there.
type calls struct {
	first, last *waiter                        // in order of arrival
	firstWakeup atomic.Pointer[command.Wakeup] // of the first one; nil for none
}

// Notify has the first call see to something that has changed. It takes no mutex.
func (q *calls) Notify() {
	if wakeup := q.firstWakeup.Load(); wakeup != nil {
		wakeup.Notify()
	}
}

// join puts the waiter at the end of the queue.
func (ls *lockState) join(w *waiter) {
	now := ls.lock()
	defer ls.unlock(now)
	w.inQueue, w.number = true, 1
	if ls.first == nil {
		ls.first, ls.last = w, w
		ls.firstWakeup.Store(w.wakeup)
	} else {
		w.number = ls.last.number + 1
		w.prev, ls.last.next = ls.last, w
		ls.last = w
		// its holder may have a hold by then, by another call
		w.wakeup.NotifyAt(now.Add(ls.client.set.Poll))
	}
	ls.step(now, &room.Event{What: room.Joined, Call: room.Call{ID: w.number, Terms: w.terms(w.lease), Began: w.began, Until: w.bound.until}})
}

// waits tells the trace that the first call, or the one that has just come, waits for others.
func (ls *lockState) waits(number uint64) {
	if w := ls.first; w.number == number {
		w.waitStarted()
	} else {
		ls.last.waitStarted()
	}
}

// askBeside has all calls leave the queue, and ask beside each other.
func (ls *lockState) askBeside() {
	for w := ls.first; w != nil; w = w.next {
		w.outcome.err = errAskBeside
		w.wakeup.Notify()
	}
}

// outcomeOf is what the waiter has got so far. brokenOff: the call is to end, as the trace's
// function has not returned.
func (ls *lockState) outcomeOf(w *waiter) (o outcome, brokenOff bool) {
	now := ls.lock()
	ls.see(now)
	o, brokenOff = w.outcome, w.told.brokenOff()
	ls.unlockSeen()
	return o, brokenOff
}

// alarm wakes the waiter, which is in the queue, at this time.
func (ls *lockState) alarm(w *waiter, at time.Time) {
	ls.mu.Lock()
	w.wakeup.NotifyAt(at)
	ls.mu.Unlock()
}

// leave takes the waiter, which has got this level or none, out of the queue, where it is there
// still.
func (ls *lockState) leave(w *waiter, lv *holder.Level) {
	if !w.inQueue {
		return
	}
	now := ls.lock()
	defer ls.unlock(now)
	var ev room.Event
	if lv != nil {
		ev.Field = holdOfLevel(lv).attempts.Field
	}
	ls.leaveLocked(now, w, &ev)
}

// leaveLocked is leave of a waiter, with what has come of its call. With ls.mu held.
func (ls *lockState) leaveLocked(now time.Time, w *waiter, ev *room.Event) {
	w.inQueue = false
	if w == ls.first {
		ls.hearNews(now, true) // what was told is not about an attempt that is sent from now on
	}
	ls.remove(w)
	ev.Begins, ev.What, ev.Call.ID = ev.What == room.Began, room.Left, w.number
	ls.step(now, ev)
	if h := w.outcome.hold; h != nil && h == ls.claimed {
		ls.claimed = nil
	}
}

// remove takes the waiter out of the list.
func (q *calls) remove(w *waiter) {
	next, prev := &q.first, &q.last
	if w.prev != nil {
		next = &w.prev.next
	}
	if w.next != nil {
		prev = &w.next.prev
	}
	*next, *prev = w.next, w.prev
	w.prev, w.next = nil, nil
	if q.first == nil {
		q.firstWakeup.Store(nil)
	} else { // it is not nil meanwhile: who hears a message takes no mutex, and would wake nobody
		q.firstWakeup.Store(q.first.wakeup)
	}
}

// notifyAll makes all waiters look.
func (ls *lockState) notifyAll() {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	for w := ls.first; w != nil; w = w.next {
		w.wakeup.Notify()
	}
}

// hasWaiters tells whether somebody waits here.
func (ls *lockState) hasWaiters() bool {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	return ls.first != nil
}
