package engine

import (
	"sync/atomic"
	"time"

	"github.com/fencelock/fencelock/internal/command"
	"github.com/fencelock/fencelock/internal/holder"
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
	if ls.hold != nil {
		ls.hold.waited.tell()
	}
	if ls.first != nil {
		w.waitStarted()
		w.prev, ls.last.next = ls.last, w
		ls.last = w
		w.wakeup.NotifyAt(time.Now().Add(ls.client.set.Poll)) // its holder may have a hold by then, by another call
		return
	}
	ls.first, ls.last = w, w
	ls.asker = ls.client.newAsker()
	ls.firstWakeup.Store(w.wakeup)
	if ls.hold == nil && ls.contact == nil { // nobody else is known to want the lock
		ls.ask()
	} else {
		ls.lead()
	}
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

// youngAttempt is how long an attempt has been under way at most for whose answer the next waiter waits, when the waiter leaves that it was sent for.
// An older one may get none, which may be why that waiter leaves.
const youngAttempt = 100 * time.Millisecond

// leave takes the waiter, which has got this level or none, out of the queue. The asker goes on for the next waiter, with the same claim where that
// waiter asks for the same. What the asker has begun, and nobody waits for, is left to the releaser. An attempt at several servers, or for a permit, is not waited
// for by another waiter: the next attempt has another field (P1).
func (ls *lockState) leave(w *waiter, lv *holder.Level) {
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
	if lv != nil && w.kind.joins() {
		ls.joinAll()
	}
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
	keeps := c.fits(next) && w.outcome.hold == nil && !(asks && w.asksAnew())
	if underWay != nil && (!keeps || asks && time.Since(ls.sentAt) >= youngAttempt) {
		ls.client.commands.TakeBack(underWay)
		ls.command, ls.state = nil, resting
	}
	if c.hold != nil && !keeps {
		ls.claim = claim{}
		if lv == nil || holdOfLevel(lv) != c.hold {
			ls.client.abandon(c.hold)
		}
	}
	switch {
	case next == nil:
		ls.rest(underWay, asks)
	case next.outcome.err == errJoin && ls.command == nil: // it leaves, too
		ls.watchFor(ls.client.set.Poll)
	case isClosed(ls.client.draining) && ls.command == nil && ls.hold == nil: // most waiters leave now; who stays asks a moment later
		ls.watchFor(time.Millisecond)
	default:
		ls.lead()
	}
}

// rest ends the asking, as nobody waits any more. asks: an attempt was under way, this command. With ls.mu held.
func (ls *lockState) rest(underWay *command.Command, asks bool) {
	*ls.asker = asker{}
	ls.client.spareAskers.Put(ls.asker)
	ls.asker = nil
	ls.unsubscribeIfUnused()
	if r := ls.contention; r != nil && r.calls != nil {
		if ticket := ls.leavePlace(); ticket != "" && asks { // what is under way may enter the line after that
			underWay.AfterFunc(func() { ls.client.newLeave(r.keys, ticket, underWay.Answer.Score != 0).send() })
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
	w.prev, w.next = nil, nil
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
