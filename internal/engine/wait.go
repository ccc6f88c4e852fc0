package engine

import (
	"time"

	"github.com/fencelock/fencelock/internal/holder"
)

// waitInQueue puts the waiter into the queue of this client's waiters, waits until it has the lock
// or the wait is over, and takes the waiter out of the queue, whatever ends the wait: a method of
// the user's context may panic.
func (w *waiter) waitInQueue() (lv *holder.Level, err error) {
	defer func() { w.lockState.leave(w, lv) }()
	w.lockState.join(w)
	return w.untilDone()
}

// untilDone waits until the waiter, which is in the queue, has the lock or the wait is over.
func (w *waiter) untilDone() (*holder.Level, error) {
	if w.client.shutsOut(w.caller) {
		return nil, ErrClosed
	}
	for {
		var waits bool
		if own := w.ownHold(w.holder); own == nil {
			waits = w.wakeup.Wait(w.bound.end)
		} else {
			// A hold of the same holder, taken through another context: the call may become a
			// nested one.
			changed := own.Changed()
			if err := own.Err(); err != nil {
				return nil, err
			}
			if w.mayReenter(own) {
				if lv, err := w.reenter(own); err != errOvertaken {
					return lv, err
				}
				continue
			}
			waits = w.waitBehindOwn(own, changed)
		}
		switch o, brokenOff := w.lockState.outcomeOf(w); {
		case brokenOff:
			return nil, errBrokenOff
		case w.client.shutsOut(w.caller):
			return nil, ErrClosed
		case o.hold != nil:
			lv, err := w.begin(o)
			if err != nil && w.ctx.Err() != nil {
				err = w.contextEnded()
			}
			return lv, err
		case !waits || o.err != nil && w.bound.ctx.Err() != nil:
			return nil, w.gaveUp()
		case o.err != nil:
			return nil, o.err
		}
	}
}

// waitBehindOwn waits until there may be something to see, or until the caller's own hold has
// changed, of which no level can be re-entered; false when the wait is over.
func (w *waiter) waitBehindOwn(own *hold, changed <-chan struct{}) bool {
	if warnAt := w.began.Add(w.client.set.Poll); time.Now().Before(warnAt) {
		w.lockState.alarm(w, warnAt)
	} else {
		own.warnOnce("rlock: held by this holder through another context; a nested call needs the ctx that Lock returned")
	}
	select {
	case <-w.wakeup.C():
	case <-changed:
	case <-w.bound.end:
		return false
	}
	return true
}
