package engine

import (
	"fmt"
	"time"

	"github.com/fencelock/fencelock/internal/holder"
)

// ErrMaxHold is ErrLost of a hold that was held for longer than its MaxHold.
var ErrMaxHold = holder.ErrMaxHold

// checkMaxHold refuses what no hold can be held for at most.
func checkMaxHold(d time.Duration) error {
	if d < minLease || d > maxLease {
		return fmt.Errorf("option MaxHold(%v): use %v or more, and 100 years or less%s", d, minLease, meant(d))
	}
	return nil
}

// A maxHold is when a hold ends, whatever its holder does.
type maxHold struct {
	at    time.Time
	timer *time.Timer
}

// endAfter ends the hold after d, if it is still held then. The hold is on the client's books. The
// state that is told of the release has a user more until then, or until stopMaxHold.
func (h *hold) endAfter(d time.Duration) {
	h.of.addUser()
	h.maxHold.Store(&maxHold{time.Now().Add(d), time.AfterFunc(d, h.overdue)})
	if h.unregistered.Load() { // it has ended meanwhile
		h.stopMaxHold()
	}
}

// stopMaxHold is for a hold that has ended, or whose client is closed. It does nothing where MaxHold has ended the hold, or
// does.
func (h *hold) stopMaxHold() {
	if m := h.maxHold.Load(); m != nil && m.timer.Stop() {
		h.of.removeUser()
	}
}

// left is for how long after now the hold is good if no renewal succeeds: remaining, and no longer than
// MaxHold.
func (h *hold) left(now time.Time) time.Duration {
	left := h.remaining(now)
	if m := h.maxHold.Load(); m != nil {
		left = min(left, m.at.Sub(now))
	}
	return max(0, left)
}

// overdue ends the contexts of a hold that is held for longer than it may be, and releases the lock.
// Its Unlock comes later, or never, and says that the lock was lost.
func (h *hold) overdue() {
	c, now := h.lockState.client, time.Now()
	c.underWay.Add(1) // Close waits for the release
	defer c.underWay.Add(-1)
	defer h.of.removeUser()
	if !h.loseUntold(ErrMaxHold.Error(), false) {
		return // it was unlocked, or lost, before
	}
	said, err := h.releaseForAll(now, c.set.UnlockTimeout, "", false)
	if err != nil {
		c.set.Log.Warn("rlock: the release of a lock that was held for longer than MaxHold", "lock", h.lock.keys.Lock, "error", err)
	}
	h.unregister(&said)
	h.tellDone(now, h.endOf(ErrMaxHold.Error()), h.Loss())
}
