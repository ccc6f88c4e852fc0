package engine

import (
	"errors"
	"fmt"
	"time"

	"github.com/fencelock/fencelock/scripts"
)

// A lock of which several holds may be there at once, as a semaphore and a read-write lock, has one state with the queue of its calls and the client's
// place in the line. Each of its holds has a lock state of its own, as if it were the hold of a plain lock: renewal, loss and contexts are those of any
// hold.

// A share is what a hold has of the semaphore, or of the side of a read-write lock, that it is a hold of.
type share struct {
	of   *lockState    // of the semaphore, or of the side
	lock *Lock         // of the slot; of a read-write lock the side itself
	keys *scripts.Keys // those by which the hold is released
	slot int           // of a semaphore
}

// isPlain tells whether the lock is neither a semaphore nor a side of a read-write lock.
func (l *Lock) isPlain() bool { return !l.isSemaphore() && !l.isSide() }

// asksAnew tells whether the field of an attempt without an answer is not used again (P1, P43).
func (l *Lock) asksAnew() bool { return l.client.limits.several() || !l.isPlain() }

// checkKind refuses a name that is not for this kind of lock, and a client that has no such kind.
func (l *Lock) checkKind() error {
	switch {
	case l.isSemaphore() && l.client.limits.several():
		return errors.New("a semaphore needs one Redis, Sentinel or a cluster: a quorum has none; make it with a client of package rlock")
	case l.isSide() && l.client.limits.several():
		return errors.New("a read-write lock needs one Redis, Sentinel or a cluster: a quorum has none; make it with a client of package rlock")
	case !l.isSemaphore() && scripts.IsPermits(l.id.Name):
		return fmt.Errorf("the name %q stands for the slots of a semaphore: take another one, or NewSemaphore", l.id.Name)
	}
	return nil
}

// releaseKeys are the keys by which the hold is released.
func (h *hold) releaseKeys() *scripts.Keys {
	if h.share != nil {
		return h.share.keys
	}
	return h.keys
}

// noteRelease notes the answer to the hold's release, which was begun at this time.
func (h *hold) noteRelease(a scripts.Answer, began time.Time) {
	switch {
	case h.share == nil:
		h.lockState.released(h, a, began)
	case !h.lockState.client.usesLine():
		h.share.of.released(h, a, began)
	}
}
