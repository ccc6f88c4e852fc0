package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"weak"

	"github.com/fencelock/fencelock/internal/releases"
	"github.com/fencelock/fencelock/observe/locktrace"
	"github.com/fencelock/fencelock/watchdog"
)

// A hold is one holder's possession of one lock, from its first acquire to its last unlock. Its field in Redis belongs to no other hold,
// ever.
type hold struct {
	client      *Client
	lockState   *lockState
	lease       watchdog.Lease
	ownAttempts releases.Attempts  // what became of the attempts to acquire it
	attempts    *releases.Attempts // the same, or those that waiter.shrink has made; they have the keys and the field in Redis
	firstLevel  level              // its outermost one
	levelStore  [1]*level          // for levels, of most holds

	prev, next *hold // of the client's, guarded by client.mu

	mu            sync.Mutex
	newHolder     *holder // the holder, until weakenHolder; most holds end before that, and need no weak pointer
	holder        weak.Pointer[holder]
	levels        []*level       // the open ones, oldest first
	changeTurn    chan struct{}  // holds a value while a count-changing command of the hold is under way
	lastChange    int64          // number of the latest count change
	token         int64          // 0: none
	end           *endError      // why its contexts are over, although it was not unlocked
	failedRenewal *failedRenewal // what became of the last renewal that failed
	changed       chan struct{}
	gone          bool        // Redis said that it has no such hold
	warned        bool        // warnOnce has logged that a call waits for the hold
	stable        bool        // keeps its first token
	uncontended   bool        // taken by an attempt, before this client was in the line (lockState.place)
	unregistered  atomic.Bool // taken off the client's books
}

// Renewal implements watchdog.Owner: a hold is renewed while somebody is there to unlock a level of it that has no lease
// of its own.
func (h *hold) Renewal() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.end != nil || !slices.ContainsFunc(h.levels, (*level).renewing) {
		return 0
	}
	if h.owner() != nil {
		h.weakenHolder()
		return h.client.set.Lease
	}
	h.client.set.Log.Error("rlock: a holder was dropped without Unlock, its lease is left to run out", "lock", h.attempts.Keys.Lock)
	for _, lv := range h.levels {
		lv.renewable = false
	}
	h.client.tracedHolds.drop(h)
	return 0
}

// renewing tells whether the watchdog renews the level's lease: the level is renewable, and its user is still there. The context that the
// level was taken with has not ended then, other than by the Unlock of an outer lock.
func (lv *level) renewing() bool {
	return lv.renewable && lv.outerContextError() == nil
}

// outerContextError is why the context that the level was taken with has ended, other than by the Unlock of an outer lock; nil if
// it has not.
func (lv *level) outerContextError() error {
	why := lv.parentError()
	if why == nil || errors.Is(why, ErrUnlocked) && !isClosed(lv.below) {
		return nil
	}
	return fmt.Errorf("the context that the lock was taken with has ended: %w", why)
}

// Slot implements watchdog.Owner.
func (h *hold) Slot() uint16 {
	return h.client.slotOf(h.attempts.Keys)
}

// Settled implements watchdog.Owner.
func (h *hold) Settled() {
	h.mu.Lock()
	h.weakenHolder()
	h.mu.Unlock()
	h.lockState.followHold(h)
}

// owner returns the hold's holder; nil if that is garbage. With h.mu held.
func (h *hold) owner() *holder {
	if h.newHolder != nil {
		return h.newHolder
	}
	return h.holder.Value()
}

// weakenHolder lets the holder become garbage from now on. With h.mu held.
func (h *hold) weakenHolder() {
	if h.newHolder != nil {
		h.holder, h.newHolder = weak.Make(h.newHolder), nil
	}
}

// changes returns the channel by which the commands that change the hold count take turns: a call puts a value into the channel before its
// command, and takes the value out after the command.
func (h *hold) changes() chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.changeTurn == nil {
		h.changeTurn = make(chan struct{}, 1)
	}
	return h.changeTurn
}

// failedRenewal is a renewal that failed.
type failedRenewal struct {
	err error
	at  time.Time
}

// renewalFailed notes that a renewal was not confirmed.
func (h *hold) renewalFailed(err error) {
	if err == context.DeadlineExceeded { // the watchdog's own, and not what ended somebody's context
		err = errNoAnswer
	}
	h.mu.Lock()
	h.failedRenewal = &failedRenewal{err, time.Now()}
	h.mu.Unlock()
}

var errNoAnswer = errors.New("no answer from Redis")

// lastRenewalError is what the last renewal said, if it failed. With h.mu held.
func (h *hold) lastRenewalError() error {
	if t := h.failedRenewal; t != nil && time.Since(t.at) < h.lease.Deadline().Age() {
		return t.err
	}
	return nil
}

// Lost implements watchdog.Owner.
func (h *hold) Lost(err error) {
	if errors.Is(err, watchdog.ErrGone) {
		h.lose(goneText, true)
		return
	}
	h.lose(h.ranOut(), false)
}

const ranOutText = "the lease ran out"

// ranOut says how a lease has ended that was not renewed in time. Where it was not to be renewed any more, because the contexts that its
// levels were taken with had ended, ranOut says so.
func (h *hold) ranOut() string {
	const how = ranOutText
	h.mu.Lock()
	defer h.mu.Unlock()
	var why error
	for _, lv := range h.levels {
		if lv.renewing() {
			return how
		}
		if lv.renewable {
			why = lv.outerContextError()
		}
	}
	if why == nil {
		return how
	}
	return how + ", which was not renewed any more: " + why.Error()
}

// checkLease ends the hold if its lease can no longer be trusted.
func (h *hold) checkLease() {
	if h.lease.Passed() {
		h.lose(h.ranOut(), false)
	}
}

// lose ends the hold's contexts with ErrLost, and has the trace told. gone: Redis has said so.
func (h *hold) lose(how string, gone bool) {
	if h.loseUntold(how, gone) {
		h.tellDone(time.Now(), endOf(how), h.lossError())
	}
}

// endOf is what the trace is told of a hold that was lost like this.
func endOf(how string) locktrace.End {
	if how == forcedOpenText {
		return locktrace.Forced
	}
	return locktrace.Lost
}

// loseUntold is lose, but leaves it to the caller to tell the trace; false where there is nothing to tell.
func (h *hold) loseUntold(how string, gone bool) bool {
	if !h.endContexts(ErrLost, how) {
		return false
	}
	h.mu.Lock()
	h.gone = gone
	open, why := len(h.levels), h.end.renewalErr
	severity, text := slog.LevelWarn, "rlock: lock lost"
	if how == ranOutText && why == nil && !slices.ContainsFunc(h.levels, func(lv *level) bool { return lv.renewable }) {
		severity, text = slog.LevelInfo, "rlock: a lease that is not renewed ran out" // as its user may mean it to
	}
	h.mu.Unlock()
	h.client.dog.Remove(&h.lease)
	if open > 0 {
		attrs := []any{"lock", h.attempts.Keys.Lock, "how", how}
		if why != nil {
			attrs = append(attrs, "last renewal", why)
		}
		h.client.set.Log.Log(context.Background(), severity, text, attrs...)
	}
	if !gone {
		h.lockState.setLost(h)
	}
	h.unregister()
	return true
}

// unregister takes the hold off the books of the client.
func (h *hold) unregister() {
	if h.unregistered.Swap(true) {
		return
	}
	h.lockState.unregisterHold(h)
	h.client.unregisterHold(h)
}

// endContexts ends the hold's contexts with this error although the hold is not unlocked. It does nothing, and returns false, where they
// have ended with ErrLost or with this error before, or where no level of the hold is open.
func (h *hold) endContexts(err error, how string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.end != nil && (h.end.err == err || h.end.err == ErrLost) || len(h.levels) == 0 {
		return false
	}
	h.end = &endError{lock: h.attempts.Keys.Lock, err: err, detail: how}
	if err == ErrLost {
		h.end.renewalErr = h.lastRenewalError()
	}
	for _, lv := range h.levels {
		lv.end(h.end)
	}
	h.notifyChanged()
	return true
}

// err is nil while the hold is trusted, else why it is not.
func (h *hold) err() error {
	h.checkLease()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.end != nil {
		return h.end.withoutLock()
	}
	return nil
}

// lossError is ErrLost, with how it came to that.
func (h *hold) lossError() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.end != nil && h.end.err == ErrLost {
		return h.end.withoutLock()
	}
	return ErrLost
}

// lost tells whether the hold has ended with ErrLost at this time. Unlike err it reads no other clocks as long as the monotonic clock
// says that the lease is good. That is enough for Unlock, which sends Redis a command next: Redis knows whether the hold is there.
func (h *hold) lost(now time.Time) bool {
	if h.remaining(now) <= 0 {
		h.checkLease()
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.end != nil && h.end.err == ErrLost
}

// newest returns the newest open level, or nil.
func (h *hold) newest() *level {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.levels) == 0 {
		return nil
	}
	return h.levels[len(h.levels)-1]
}

// admitsReentry tells whether a call with ctx re-enters: the hold's newest open level is on its own chain.
func (h *hold) admitsReentry(ctx context.Context) bool {
	newest := h.newest()
	return newest != nil && levelOf(ctx).reaches(newest)
}

// changedChannel returns a channel that is closed at the next change of the hold's levels, or its end.
func (h *hold) changedChannel() <-chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.changed == nil {
		h.changed = make(chan struct{})
	}
	return h.changed
}

// notifyChanged wakes those who watch. With h.mu held.
func (h *hold) notifyChanged() {
	if h.changed != nil {
		close(h.changed)
		h.changed = nil
	}
}

// warnOnce logs that the hold is waited for by a call that may have been meant as a nested one.
func (h *hold) warnOnce(text string) {
	h.mu.Lock()
	again := h.warned
	h.warned = true
	h.mu.Unlock()
	if !again {
		h.client.set.Log.Warn(text, "lock", h.attempts.Keys.Lock)
	}
}

// fenced tells whether the hold has a token.
func (h *hold) fenced() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.token != 0
}

// currentToken returns the hold's token; false once the hold is over.
func (h *hold) currentToken() (int64, bool) {
	if h.err() != nil {
		return 0, false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.token, len(h.levels) > 0
}

// remaining is for how long after now the lease can be trusted.
func (h *hold) remaining(now time.Time) time.Duration { return h.lease.Deadline().Time().Sub(now) }
