package engine

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/fencelock/fencelock/internal/line"
	"github.com/fencelock/fencelock/scripts"
)

// Unlock is rlock.Lock.Unlock. It releases the level that levelFor finds for ctx. The last level of a hold releases the lock, any other
// lowers the hold count.
func (l *Lock) Unlock(ctx context.Context) error {
	lv, err := l.levelFor(ctx)
	if err != nil {
		return err
	}
	h, now := lv.hold, time.Now()
	lost := h.lost(now)
	last, err := h.closeLevel(lv)
	switch {
	case err != nil:
		return err
	case last:
		return h.release(lost, now)
	case lost:
		return h.lossError()
	}
	return h.lowerCount(ctx)
}

// levelFor returns the level that an Unlock with ctx releases: ctx's own, or, for a context that carries the holder but
// no level of this lock, the holder's newest.
func (l *Lock) levelFor(ctx context.Context) (*level, error) {
	if err := l.checkMade(); err != nil {
		return nil, err
	}
	if lv := levelOf(ctx).levelOfLock(l.client, l.name); lv != nil {
		return lv, nil
	}
	who := holderOf(ctx)
	if who == nil {
		return nil, fmt.Errorf("%w: no holder in ctx, pass the context that Lock returned", ErrNotHeld)
	}
	if h := who.find(l.client, l.name); h != nil {
		if lv := h.newest(); lv != nil {
			return lv, nil
		}
	}
	return nil, fmt.Errorf("%w: this holder has no hold of the lock (unlocked already, another holder's, or taken through another Client)", ErrNotHeld)
}

// closeLevel ends a level; last tells that it was the hold's last one.
func (h *hold) closeLevel(lv *level) (last bool, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !lv.open {
		return false, fmt.Errorf("%w: unlocked already", ErrNotHeld)
	}
	lv.open = false
	i := slices.Index(h.levels, lv)
	h.levels = slices.Delete(h.levels, i, i+1)
	lv.end(&endError{lock: h.attempts.keys.Lock, err: ErrUnlocked})
	if len(h.levels) > 0 {
		h.notifyChanged()
		return false, nil
	}
	return true, nil
}

// release gives up a hold whose last level was closed, at this time.
func (h *hold) release(lost bool, now time.Time) (err error) {
	h.client.underWay.Add(1)
	defer func() {
		h.unregister()
		h.mu.Lock()
		h.notifyChanged()
		h.mu.Unlock()
		h.client.underWay.Add(-1)
		h.unlocked(now, err) // the last of it: the function that is told may use the client
	}()
	h.client.dog.Remove(&h.lease) // before the release, so that no renewal follows it
	h.mu.Lock()
	who := h.owner()
	h.newHolder = nil
	lost = lost || h.end != nil && h.end.err == ErrLost // since it was looked at; without a level it cannot be any more
	h.mu.Unlock()
	if who != nil {
		who.remove(h)
	}
	if lost {
		h.mu.Lock()
		gone := h.gone
		h.mu.Unlock()
		if gone && !h.client.limits.Several {
			h.attempts.released()
		}
		if h.attempts.needsRelease() {
			h.client.releaser.release(h.attempts) // a renewal that got no answer may have kept it in Redis
		}
		return h.lossError()
	}
	bound := max(min(h.client.set.UnlockTimeout, h.remaining(now)), time.Millisecond)
	if !h.lockState.hasWaiters() {
		return h.releaseForAll(now, bound, false)
	}
	passed, maybePassed := h.handOff(bound / 3)
	if passed {
		return nil
	}
	used := time.Since(now)
	return h.releaseForAll(now.Add(used), bound-used, maybePassed)
}

// handOff hands the lock to the first waiter of this client by a command, and waits for the answer no longer than within. passed: Redis
// has confirmed the handoff. maybePassed: the command, or a copy of it, got no answer, so Redis may have executed it.
func (h *hold) handOff(within time.Duration) (passed, maybePassed bool) {
	wake, began := h.client.wakeup(), time.Now()
	defer h.client.putWakeup(wake)
	f := h.lockState.startHandoff(h, wake)
	if f == nil {
		return false, false
	}
	if !f.waitFor(wake, began, within, nil) {
		h.client.takeBack(f)
	}
	if !f.done.Load() {
		h.lockState.cancelHandoff(f)
		return false, true
	}
	if f.answer.Held {
		h.releaseConfirmed()
		return true, false
	}
	if scripts.Denied(f.err) && h.client.handoffDenied.CompareAndSwap(false, true) {
		h.client.set.Log.Warn("rlock: Redis refuses to pass a lock on within the process, for want of a right: each release goes to all who wait", "error", f.err)
	}
	return false, f.answer.Copies > 0 || f.err != nil && f.err != errNotSent && scripts.Unanswered(f.err)
}

// releaseForAll releases the lock in Redis, so that any client may take it. The release has begun at this time, and takes no longer than
// bound. maybePassed: a handoff before the release got no answer, so Redis may have executed it, and a release that finds nothing is no loss.
func (h *hold) releaseForAll(began time.Time, bound time.Duration, maybePassed bool) error {
	c := h.client
	ticket := h.lockState.ticketForRelease()
	answer, maybeExecuted, err := h.sendRelease(ticket, began, bound)
	h.lockState.inPlace(func(p *line.Place, _ time.Time) bool {
		p.EnteredByRelease(ticket, answer.Score) // 0 where the release has entered no line
		return true
	})
	if err != nil {
		c.releaser.releaseHeld(h.attempts)
		return fmt.Errorf("release not confirmed, it is sent again in the background: %w", c.withDial(err, began))
	}
	if answer.Owed {
		c.releaser.releaseRest(h.attempts, time.Time{})
	} else {
		h.releaseConfirmed()
	}
	c.releaseAnswered(answer, h.attempts.keys)
	if !answer.Held && !maybePassed && !maybeExecuted && answer.Copies == 0 {
		return ErrLost
	}
	h.lockState.released(h, answer, began)
	return nil
}

// sendRelease sends the release until it is answered, as sendAndRetry does. ticket is the one with which the client enters the line again
// by the release, or "".
func (h *hold) sendRelease(ticket string, began time.Time, bound time.Duration) (answer scripts.Answer, maybeExecuted bool, err error) {
	c := h.client
	if sharded, known := c.bus.Known(); known {
		return c.sendAndRetry(context.Background(), began, bound, bound/3, h.callingFirst(scripts.Unlock(h.attempts.keys, h.attempts.field, sharded), ticket))
	}
	ctx, cancel := context.WithTimeout(context.Background(), bound)
	defer cancel()
	return retry(ctx, bound/3, func(ctx context.Context) (scripts.Answer, error) {
		sharded := c.bus.Sharded(ctx)
		return c.store.Do(ctx, c.callingFirst(scripts.Unlock(h.attempts.keys, h.attempts.field, sharded), "", 0))
	})
}

// releaseConfirmed notes that Redis has confirmed the end of the hold.
func (h *hold) releaseConfirmed() {
	if h.attempts.released() {
		h.client.releaser.release(h.attempts)
	}
}

// lowerCount tells Redis the hold count after an inner Unlock.
func (h *hold) lowerCount(ctx context.Context) error {
	c := h.client
	bound := max(min(c.set.UnlockTimeout, h.remaining(time.Now())), time.Millisecond)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), bound)
	defer cancel()
	turn := h.changes()
	select {
	case turn <- struct{}{}:
		defer func() { <-turn }()
	case <-ctx.Done():
		return errSilence // the change before it has no answer
	}
	h.mu.Lock()
	count := len(h.levels)
	h.lastChange++
	op := h.lastChange
	h.mu.Unlock()
	if count == 0 {
		return nil // the outer level was unlocked meanwhile, and all is released
	}
	answer, _, err := c.sendAndRetry(ctx, time.Now(), bound, bound/3, scripts.Level(h.attempts.keys, false, h.attempts.field, 0, count, op))
	if err != nil {
		return fmt.Errorf("hold count not confirmed, the last Unlock releases the lock in any case: %w", err)
	}
	if !answer.Held && h.newest() != nil {
		h.lose("an unlock found the lock gone", true)
		return ErrLost
	}
	return nil
}
