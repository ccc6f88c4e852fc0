package engine

import (
	"github.com/fencelock/fencelock/internal/holder"
	"github.com/fencelock/fencelock/scripts"
)

// A semaphore is a Lock whose keys are those of several slots. Its calls wait in one queue, and its client has one place in one line. What a
// call gets is a hold of the lock of one slot, by the lockState of that lock: from then on the hold is one like any other, but for its
// release, which calls those who wait for a permit.

// MostPermits is the largest number of permits of a semaphore.
const MostPermits = scripts.MostPermits

// isSemaphore tells whether the lock is a semaphore.
func (l *Lock) isSemaphore() bool { return l.keys.Permits() > 0 }

// takeSlot makes the hold, which has got this slot of a semaphore, a hold of the slot's lock. It counts a user of that lock's state.
func (h *hold) takeSlot(lock *Lock, slot int) *holder.Lock {
	h.share = &share{of: h.lockState, lock: lock, keys: h.keys.PermitIn(slot), slot: slot}
	h.keys, h.lockState = lock.keys, lock.client.lockState(lock.stateKey())
	return &lock.id
}

// slotName is the name of the lock of a permit's slot; "" for another hold.
func (h *hold) slotName() string {
	if h.share == nil || h.share.lock.isSide() {
		return ""
	}
	return h.share.lock.id.Name
}

// Slot returns the slot of a permit.
func (h *Held) Slot() int {
	if !h.isMade() || holdOfLevel(h.level).share == nil {
		return -1
	}
	return holdOfLevel(h.level).share.slot
}

// SlotLock returns the lock of this slot of the semaphore.
func (l *Lock) SlotLock(slot int) *Lock {
	return NewLock(l.client, l.keys.SlotName(slot), LockOptions{Fenced: true, Floor: l.options.Floor, Expiry: l.options.Expiry})
}

// CallFirst has Redis call the first client that waits for a permit, if a slot is free. Nobody waits for that.
func (l *Lock) CallFirst() { l.client.leaveLine(l.keys, "") }
