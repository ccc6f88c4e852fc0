package engine

import (
	"sync/atomic"
	"time"

	"github.com/fencelock/fencelock/internal/command"
)

// A queue is the acquiring calls of one client that are under way for one lock.
type queue struct {
	first, last *waiter                        // those that wait, in order of arrival
	firstWakeup atomic.Pointer[command.Wakeup] // of the first one; nil for none
	trying      *waiter                        // those that ask without waiting, linked by prev and next
}

// join puts the waiter at the end of the queue of this client's waiters.
func (ls *lockState) join(w *waiter) {
	ls.mu.Lock()
	defer ls.unlock()
	if ls.first != nil {
		w.waitStarted()
		w.prev, ls.last.next = ls.last, w
		ls.last = w
		return
	}
	ls.first, ls.last = w, w
	ls.firstWakeup.Store(w.wakeup)
	ls.lead()
}

// outcomeOf is what the waiter has got so far. brokenOff: the call is to end, as the trace's function has not returned.
func (ls *lockState) outcomeOf(w *waiter) (o outcome, brokenOff bool) {
	ls.mu.Lock()
	ls.see()
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

// leave takes the waiter out of the queue. got: the waiter has a level. The asker goes on for the next waiter, with the same claim where that
// waiter asks for the same. What the asker has begun, and nobody waits for, is left to the releaser.
func (ls *lockState) leave(w *waiter, got bool) {
	ls.mu.Lock()
	defer ls.unlock()
	wasFirst := w == ls.first
	if w == ls.last {
		ls.last = w.prev
	}
	w.unlink(&ls.first)
	if !wasFirst {
		return
	}
	next := ls.first
	if next != nil {
		ls.firstWakeup.Store(next.wakeup)
	} else {
		ls.firstWakeup.Store(nil)
	}
	ls.hearNews() // what was told is not about an attempt that is sent from now on
	if ls.state == decided {
		ls.state = resting
	}
	underWay, asks, c := ls.command, ls.state == asking, ls.claim
	keeps := c.fits(next) && w.outcome.hold == nil
	if underWay != nil && (asks || !keeps) { // the call may have ended because there is no answer: the next one asks anew
		ls.client.commands.TakeBack(underWay)
		ls.command, ls.state = nil, resting
	}
	if c.hold != nil && !keeps {
		ls.claim = claim{}
		if !got {
			ls.client.abandon(c.hold)
		}
	}
	if next != nil {
		ls.lead()
		return
	}
	ls.asker = asker{}
	ls.unsubscribeIfUnused()
	if r := ls.contention; r != nil && r.calls != nil {
		if ticket := r.place.GiveUp(time.Now()); ticket != "" {
			ls.client.leaveLine(r.keys, ticket)
			if asks { // what is under way may enter the line after that
				underWay.AfterFunc(ls.client.newLeave(r.keys, ticket).send)
			}
		}
		ls.linger(lingerTime)
	}
}

// unlink takes the waiter out of the list that it is in, which begins with *first. With ls.mu held.
func (w *waiter) unlink(first **waiter) {
	if w.next != nil {
		w.next.prev = w.prev
	}
	if w.prev != nil {
		w.prev.next = w.next
	} else {
		*first = w.next
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
