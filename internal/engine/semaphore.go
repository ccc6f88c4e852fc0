package engine

import (
	"errors"

	"github.com/fencelock/fencelock/internal/holder"
	"github.com/fencelock/fencelock/scripts"
)

// A semaphore is a Lock whose keys are those of several slots. Its calls wait in one queue, and its
// client has one place in one line. What a call gets is a hold of the lock of one slot, by the
// lockState of that lock: from then on the hold is one like any other, but for its release, which
// calls those who wait for a permit.

// permits is the kind of a semaphore with n of them. Nobody asks who has the semaphore's own Lock,
// or re-enters it: the locks of the slots are plain.
type permits struct {
	plain
	n int
}

func (permits) refuses(l *Lock) error {
	if l.client.limits.several() {
		return errors.New("a semaphore needs one Redis, Sentinel or a cluster: a quorum has none; make it with a client of package rlock")
	}
	return nil
}

func (permits) shared() bool                               { return true }
func (permits) field(c *Client, keys *scripts.Keys) string { return c.newSharedField(keys) }

func (permits) take(w *waiter, h *hold, slot int) *holder.Lock {
	l := w.SlotLock(slot)
	l.releaseKeys, l.slot = w.keys.PermitIn(slot), slot
	h.lock, h.lockState = l, l.lockState()
	return &l.id
}

// MostPermits is the largest number of permits of a semaphore.
const MostPermits = scripts.MostPermits

// slotName is the name of the lock of a permit's slot; "" for another hold.
func (h *hold) slotName() string {
	if h.lock.slot == noSlot {
		return ""
	}
	return h.lock.id.Name
}

// noSlot is the slot of a hold that is no permit.
const noSlot = -1

// Slot returns the slot of a permit.
func (h *Held) Slot() int {
	if !h.isMade() {
		return noSlot
	}
	return holdOfLevel(h.level).lock.slot
}

// SlotLock returns the lock of this slot of the semaphore.
func (l *Lock) SlotLock(slot int) *Lock {
	return NewLock(l.client, l.keys.SlotName(slot), LockOptions{Fenced: true, Floor: l.options.Floor, Expiry: l.options.Expiry})
}

// CallFirst has Redis call the first client that waits for a permit, if a slot is free. Nobody
// waits for that.
func (l *Lock) CallFirst() { l.client.leaveLine(l.keys, "") }
