package engine

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/fencelock/fencelock/internal/holder"
	"github.com/fencelock/fencelock/internal/releases"
	"github.com/fencelock/fencelock/internal/room"
	"github.com/fencelock/fencelock/observe/locktrace"
	"github.com/fencelock/fencelock/watchdog"
)

// A hold is one holder's possession of one lock, with what Redis and the client have of it. Its
// field in Redis belongs to no other hold, ever.
type hold struct {
	holder.Hold // its levels and their contexts, its lease and its token

	lock      *Lock // of a permit that of its slot
	lockState *lockState
	of        *lockState // in whose queue it was waited for; of a plain lock: lockState
	*possession

	prev, next *hold // of the client's, guarded by client.mu

	waited *waited // nil until the user asks for it; guarded by lockState.mu
	taking
	ending
}

// A possession is what Redis has of a hold, by its field. The holds that follow each other by local
// handoffs share it.
type possession struct {
	// what became of the attempts to acquire it; they have the field in Redis
	attempts releases.Attempts
	changes  countChanges
	series   *series // nil without local handoffs
}

// taking is how a hold was taken.
type taking struct {
	stable      bool // it keeps its first token
	passedOn    bool // a handoff, also one without an answer, was to make it
	local       bool // by a local handoff
	wentOn      bool // it was passed on by one
	uncontended bool // by an attempt, before this client was in the line
}

// ending is what a hold knows of its end, and of what may come before that.
type ending struct {
	failedRenewal atomic.Pointer[failedRenewal] // what became of the last renewal that failed
	gone          atomic.Bool                   // Redis said that it has no such hold
	// warnOnce has logged that a call waits for the hold
	warned       atomic.Bool
	unregistered atomic.Bool             // taken off the client's books
	maxHold      atomic.Pointer[maxHold] // nil without MaxHold
	exported     atomic.Pointer[export]  // nil where it was not
}

// isShare tells whether the hold is one of a shared lock (kind).
func (h *hold) isShare() bool { return h.of != h.lockState }

// holdOfLevel returns the hold that the level belongs to.
func holdOfLevel(lv *holder.Level) *hold { return lv.Hold.Lease.Owner.(*hold) }

// ownHold returns the holder's hold of the lock, open or not unlocked yet, or nil. A holder that
// writes reads too.
func (l *Lock) ownHold(who *holder.Holder) *hold {
	h := who.Find(&l.id)
	if h == nil && l.within != nil {
		h = who.Find(l.within)
	}
	if h == nil {
		return nil
	}
	return h.Lease.Owner.(*hold)
}

// Renewal implements watchdog.Owner: a hold is renewed while somebody is there to unlock a level of
// it that has no lease of its own.
func (h *hold) Renewal() time.Duration {
	renewed, dropped := h.Renewed()
	if renewed {
		return h.lockState.client.set.Lease
	}
	if dropped {
		h.lockState.client.set.Log.Error("rlock: a holder was dropped without Unlock, its lease is left to run out", "lock", h.lock.keys.Lock)
		h.lockState.client.tracedHolds.drop(h)
	}
	return 0
}

// Slot implements watchdog.Owner.
func (h *hold) Slot() uint16 {
	return h.lockState.client.slotOf(h.lock.keys)
}

// Settled implements watchdog.Owner.
func (h *hold) Settled() {
	h.Weaken()
	h.lockState.followHold(h)
}

// failedRenewal is a renewal that failed.
type failedRenewal struct {
	err error
	at  time.Time
}

// renewalFailed notes that a renewal was not confirmed.
func (h *hold) renewalFailed(err error) {
	// the watchdog's own, and not what ended somebody's context
	if err == context.DeadlineExceeded {
		err = errNoAnswer
	}
	h.failedRenewal.Store(&failedRenewal{err, time.Now()})
}

var errNoAnswer = errors.New("no answer from Redis")

// lastRenewalError is what the last renewal said, if it failed.
func (h *hold) lastRenewalError() error {
	if t := h.failedRenewal.Load(); t != nil && time.Since(t.at) < h.Lease.Deadline().Age() {
		return t.err
	}
	return nil
}

// Lost implements watchdog.Owner.
func (h *hold) Lost(err error) {
	if errors.Is(err, watchdog.ErrGone) {
		h.lose(h.mayBeImported(goneText), true)
		return
	}
	h.lose(h.ranOut(), false)
}

const ranOutText = "the lease ran out"

// ranOut says how a lease has ended that was not renewed in time. Where it was not to be renewed
// any more, because the contexts that its levels were taken with had ended, ranOut says so.
func (h *hold) ranOut() string {
	if _, why := h.Renewable(); why != nil {
		return ranOutText + ", which was not renewed any more: " + why.Error()
	}
	return ranOutText
}

// lose ends the hold's contexts with ErrLost, and has the trace told. gone: Redis has said so.
func (h *hold) lose(how string, gone bool) {
	if h.loseUntold(how, gone) {
		h.tellDone(time.Now(), h.endOf(how), h.Loss())
	}
}

// endOf is what the trace is told of a hold that was lost like this.
func (h *hold) endOf(how string) locktrace.End {
	if h.Loss() == ErrImported {
		return locktrace.Imported
	}
	if how == forcedOpenText {
		return locktrace.Forced
	}
	return locktrace.Lost
}

// loseUntold is lose, but leaves it to the caller to tell the trace; false where there is nothing
// to tell.
func (h *hold) loseUntold(how string, gone bool) bool {
	renewable, _ := h.Renewable()
	why := h.lastRenewalError()
	imported := gone && h.wasImported()
	switch {
	case imported && !h.End(ErrImported, "", nil), !imported && !h.End(ErrLost, how, why):
		return false
	}
	h.gone.Store(gone)
	h.lockState.client.dog.Remove(&h.Lease)
	severity, text := slog.LevelWarn, "rlock: lock lost"
	if gone && h.exported.Load() != nil {
		severity = slog.LevelInfo // as its user may mean it to
		h.leaveAttempts()         // its Unlock may never come
	}
	if imported {
		text = "rlock: a hold was imported"
	}
	if how == ranOutText && why == nil && !renewable {
		// as its user may mean it to
		severity, text = slog.LevelInfo, "rlock: a lease that is not renewed ran out"
	}
	attrs := []any{"lock", h.lock.keys.Lock, "how", how}
	if why != nil {
		attrs = append(attrs, "last renewal", why)
	}
	h.lockState.client.set.Log.Log(context.Background(), severity, text, attrs...)
	if !gone {
		h.lockState.setLost(h)
	}
	h.unregister(nil)
	return true
}

// unregister takes the hold off the books of the client, and tells its room, which a share has for
// itself, and the room in whose queue it was waited for. released: what its release has come to;
// nil or zero for none.
func (h *hold) unregister(released *room.Event) {
	over := h.unregistered.Swap(true)
	if released != nil && released.What != room.Released {
		released = nil
	}
	if released != nil && (over || h.isShare()) {
		h.of.happened(*released)
		released = nil
	}
	if over {
		return
	}
	h.stopMaxHold()
	h.lockState.unregisterHold(h, released)
	h.lockState.client.unregisterHold(h)
}

// lost tells whether the hold has ended with ErrLost at this time. Unlike Err it reads no other
// clocks as long as the monotonic clock says that the lease is good. That is enough for Unlock,
// which sends Redis a command next, or looks at all clocks before a local handoff (offers).
func (h *hold) lost(now time.Time) bool {
	if h.remaining(now) <= 0 && h.Lease.Passed() {
		h.lose(h.ranOut(), false)
	}
	return h.Loss() != nil
}

// warnOnce logs that the hold is waited for by a call that may have been meant as a nested one.
func (h *hold) warnOnce(text string) {
	if !h.warned.Swap(true) {
		h.lockState.client.set.Log.Warn(text, "lock", h.lock.keys.Lock)
	}
}

// remaining is for how long after now the lease can be trusted.
func (h *hold) remaining(now time.Time) time.Duration { return h.Lease.Deadline().Time().Sub(now) }
