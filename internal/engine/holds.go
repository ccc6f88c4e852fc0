package engine

import (
	"strings"
	"time"

	"github.com/fencelock/fencelock/internal/command"
	"github.com/fencelock/fencelock/internal/room"
	"github.com/fencelock/fencelock/scripts"
)

// An exit is how the Unlock of a hold goes on, as the room says.
type exit struct {
	over   bool   // the room has said:
	passed bool   // the lock was passed on; otherwise it is to be released,
	local  bool   // by a local handoff
	doubt  bool   // and may have been passed on
	ticket string // with which the client enters the line by the release
}

// An unlocking is an Unlock that waits for a pass.
type unlocking struct {
	attempt
	exit
	wakeup *command.Wakeup
}

// exit asks the room what becomes of the hold, and waits for a pass no longer than within. waited:
// there was one.
func (ls *lockState) exit(h *hold, began time.Time, within time.Duration) (x exit, waited bool) {
	ev := room.Event{What: room.Unlocking, Field: h.attempts.Field}
	next := int64(0)
	if h.series != nil {
		next = h.offers(&ev)
	}
	ls.mu.Lock()
	ls.hearAnswers(began)
	if ls.hold == h {
		ls.takenAt = time.Time{}
	}
	if ls.exited = (exit{}); h.series != nil {
		h.series.next = next
	}
	ls.step(began, &ev)
	u := ls.pass
	if x = ls.exited; x.over {
		ls.unlock(began)
		return x, false
	}
	ls.see(began)
	for !u.over {
		ls.unlockSeen()
		u.wakeup.NotifyAt(began.Add(within))
		u.wakeup.Wait(nil)
		now := ls.lock()
		if ls.see(now); !u.over && now.Sub(began) >= within {
			ls.giveUpPass(now, u, h.attempts.Field)
		}
	}
	ls.unlockSeen()
	ls.client.commands.PutWakeup(u.wakeup)
	return u.exit, true
}

// exits has an Unlock go on. With ls.mu held.
func (ls *lockState) exits(e *room.Effect) {
	x := exit{true, e.Do == room.Passed, e.Local, e.Doubt, e.Ticket}
	if e.Waited {
		ls.pass.exit = x
		ls.pass.wakeup.Notify()
	} else {
		ls.exited = x
	}
}

// giveUpPass ends the wait for the pass from the hold with this field. With ls.mu held.
func (ls *lockState) giveUpPass(now time.Time, u *unlocking, field string) {
	ls.client.commands.TakeBack(u.command)
	if ls.see(now); !u.over { // it had left
		u.command = nil
		ls.step(now, &room.Event{What: room.GaveUp, Field: field})
		ls.pass = nil
		ls.see(now)
	}
}

// followHold subscribes for a hold that has lasted for a while, to learn soon that it was forced
// open.
func (ls *lockState) followHold(h *hold) {
	now := ls.lock()
	defer ls.unlock(now)
	if ls.hold != h || ls.holdFollowed {
		return
	}
	if ls.client.followedHolds.Add(1) > maxFollowed && h.exported.Load() == nil {
		ls.client.followedHolds.Add(-1)
		return
	}
	ls.holdFollowed = true
	ls.step(now, &room.Event{What: room.Kept, Field: h.attempts.Field})
}

// unfollowHold ends what followHold began. With ls.mu held.
func (ls *lockState) unfollowHold() {
	if ls.holdFollowed {
		ls.holdFollowed = false
		ls.client.followedHolds.Add(-1)
	}
}

// maxFollowed bounds the holds, but for those that were exported, for which a client is subscribed (followHold): after a reconnect
// Redis is asked about each of them. The client notices beyond this bound that a hold was forced
// open when it renews the lease, and for a hold with a lease of its own with the next command.
const maxFollowed = 1000

// registerHold notes that h is the client's hold of the lock, by this outcome of a waiter, which
// leaves the queue if it is in that of the same state. A hold that is noted still has been lost,
// unless its last level is closed. Where its command was sent after that of h, and its release was
// not sent so far, h has been lost before its call has begun it. over: how h has been lost; "" for
// not.
func (ls *lockState) registerHold(h *hold, o outcome, w *waiter) (over string) {
	now := o.sentAt.Time()
	ls.mu.Lock()
	if ls.passed == h {
		ls.passed = nil
	}
	leaves := w.inQueue && w.lockState == ls
	old := ls.hold
	if old != nil && now.Before(ls.takenAt) {
		if leaves {
			ls.leaveLocked(now, w, &room.Event{Field: h.attempts.Field})
		}
		ls.unlock(now)
		return takenText
	}
	if old != nil {
		old.waited.end()
	}
	ls.unfollowHold()
	ls.hold, ls.takenAt = h, now
	// Where a handoff was to make it, others may be in the line (P36).
	before := h.uncontended || !h.local && !h.passedOn && w.request.imports == nil
	h.uncontended = before && !h.isShare() && !ls.room.Entered()
	ev := room.Event{What: room.Began, Field: h.attempts.Field, Got: h.passedOn || h.local, At: now}
	if leaves {
		ls.leaveLocked(now, w, &ev)
	} else {
		ls.step(now, &ev)
	}
	ls.unlock(now)
	if old != nil {
		old.lose(takenText, old.heardImportBy(w))
	}
	if ls.client.wasForced(h.attempts.Field, now) {
		return forcedOpenText
	}
	return ""
}

// takenText is how a hold was lost where another one of its client has the lock.
const takenText = "another holder has the lock"

// unregisterHold notes that h is no longer the client's hold of the lock. released: what its
// release has come to; nil for none.
func (ls *lockState) unregisterHold(h *hold, released *room.Event) {
	now := ls.lock()
	defer ls.unlock(now)
	if ls.hold == h {
		ls.hold = nil
		h.waited.end()
		ls.unfollowHold()
	}
	if h.wentOn { // its field is that of another hold
		return
	}
	ev := room.Event{Field: h.attempts.Field}
	if released != nil {
		ev = *released
	}
	ev.What, ev.Ends = room.Ended, released != nil
	ls.step(now, &ev)
}

// setLost notes that the hold is lost by this client's clock. Redis keeps it for a margin longer.
func (ls *lockState) setLost(h *hold) {
	ls.happened(room.Event{What: room.Lost, Field: h.attempts.Field})
}

// releaseOver releases the hold of this field, which a release has found in place of its own, if it
// is one of this client's that is over.
func (c *Client) releaseOver(keys *scripts.Keys, field string) {
	if !c.owns(field) {
		return
	}
	c.mu.Lock()
	ls := c.locks[stateKey{name: keys.Lock, side: keys.Side()}]
	c.mu.Unlock()
	if ls != nil { // otherwise there is no call, and no hold
		ls.mu.Lock()
		has := ls.room.Has(field)
		ls.mu.Unlock()
		if has {
			return
		}
	}
	c.releaser.WasOver(keys, field, c.set.Lease)
}

// owns tells whether the field is of a hold of this client, and not one of a semaphore or a
// read-write lock.
func (c *Client) owns(field string) bool {
	return strings.HasPrefix(field, c.id+":") && !strings.HasPrefix(field, c.id+":-")
}
