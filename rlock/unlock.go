package rlock

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/fencelock/fencelock/scripts"
)

// unlock is Unlock without the wrapping of its errors.
func (l *Lock) unlock(ctx context.Context) error {
	lv, err := l.levelFor(ctx)
	if err != nil {
		return err
	}
	h, now := lv.hold, time.Now()
	lost := h.lost(now)
	last, err := h.close(lv)
	switch {
	case err != nil:
		return err
	case last:
		return h.release(lost, now)
	case lost:
		return h.lossError()
	}
	return h.lower(ctx)
}

// levelFor returns the level that an Unlock with ctx releases: ctx's own, or, for a context that carries the holder but
// no level of this lock, the holder's newest.
func (l *Lock) levelFor(ctx context.Context) (*level, error) {
	if err := l.checkMade(); err != nil {
		return nil, err
	}
	if lv := levelOf(ctx).of(l.client, l.name); lv != nil {
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

// close ends a level; last tells that it was the hold's last one.
func (h *hold) close(lv *level) (last bool, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !lv.open {
		return false, fmt.Errorf("%w: unlocked already", ErrNotHeld)
	}
	lv.open = false
	i := slices.Index(h.levels, lv)
	h.levels = slices.Delete(h.levels, i, i+1)
	lv.end(&ended{lock: h.trace.keys.Lock, err: ErrUnlocked})
	if len(h.levels) > 0 {
		h.announce()
		return false, nil
	}
	return true, nil
}

// release gives up a hold whose last level was closed, at this time.
func (h *hold) release(lost bool, now time.Time) error {
	h.client.calls.Add(1)
	defer func() {
		h.leave()
		h.mu.Lock()
		h.announce()
		h.mu.Unlock()
		h.client.calls.Add(-1)
	}()
	h.client.dog.Remove(&h.lease) // before the release, so that no renewal follows it
	h.mu.Lock()
	who := h.owner()
	h.new = nil
	lost = lost || h.end != nil && h.end.err == ErrLost // since it was looked at; without a level it cannot be any more
	h.mu.Unlock()
	if who != nil {
		who.remove(h)
	}
	if lost {
		h.mu.Lock()
		gone := h.gone
		h.mu.Unlock()
		if gone && !h.client.apart {
			h.trace.released()
		}
		if h.trace.open() {
			h.client.releaser.release(h.trace) // a renewal that got no answer may have kept it in Redis
		}
		return h.lossError()
	}
	bound := max(min(h.client.unlockTimeout, h.remaining(now)), time.Millisecond)
	if h.queue.grant(h, bound/3) {
		return nil
	}
	var passed, doubt bool
	if h.block != nil || h.queue.awaited() { // a block may have been waited for
		passed, doubt = h.pass(bound / 3)
	} else {
		return h.free(now, bound, false)
	}
	if passed {
		return nil
	}
	used := time.Since(now)
	return h.free(now.Add(used), bound-used, doubt)
}

// pass gives the lock to the next one in line. doubt: perhaps it did.
func (h *hold) pass(within time.Duration) (passed, doubt bool) {
	b, began := h.client.bell(), time.Now()
	defer h.client.hang(b)
	k := h.queue.offer(h, b)
	if k == nil {
		return false, false
	}
	if !k.within(b, began, within, nil) {
		h.client.withdraw(k)
	}
	if !k.over.Load() {
		h.queue.revoke(k)
		return false, true
	}
	if k.answer.Held {
		h.unlocked()
		return true, false
	}
	return false, k.err != nil && k.err != errNotSent && scripts.Unanswered(k.err)
}

// free releases the lock for anyone, from this time on.
func (h *hold) free(began time.Time, bound time.Duration, doubt bool) error {
	c := h.client
	ticket := h.queue.enters()
	answer, again, err := h.sendRelease(ticket, began, bound)
	if err != nil {
		c.releaser.release(h.trace)
		return fmt.Errorf("release not confirmed, it is sent again in the background: %w", err)
	}
	if answer.Owed {
		c.releaser.rest(h.trace)
	} else {
		h.unlocked()
	}
	if !answer.Held && !doubt && !again {
		return ErrLost
	}
	c.told(answer, h.trace.keys)
	h.queue.released(h, ticket, answer, began)
	return nil
}

func (h *hold) sendRelease(ticket string, began time.Time, bound time.Duration) (answer scripts.Answer, doubt bool, err error) {
	c := h.client
	if sharded, known := c.bus.Known(); known {
		op := h.calling(scripts.Unlock(h.trace.keys, h.trace.field, sharded), ticket)
		if n := h.block.unused(); n > 0 {
			op = op.Return(h.block.last, n)
		}
		return c.do(context.Background(), began, bound, bound/3, op)
	}
	ctx, cancel := context.WithTimeout(context.Background(), bound)
	defer cancel()
	return insist(ctx, bound/3, func(ctx context.Context) (scripts.Answer, error) {
		sharded := c.bus.Sharded(ctx)
		return c.store.Do(ctx, c.calling(scripts.Unlock(h.trace.keys, h.trace.field, sharded), "", 0))
	})
}

// unlocked notes that Redis has confirmed the end of the hold.
func (h *hold) unlocked() {
	if h.trace.released() {
		h.client.releaser.release(h.trace)
	}
}

// lower tells Redis the hold count after an inner Unlock.
func (h *hold) lower(ctx context.Context) error {
	c := h.client
	bound := max(min(c.unlockTimeout, h.remaining(time.Now())), time.Millisecond)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), bound)
	defer cancel()
	turn := h.inTurn()
	select {
	case turn <- struct{}{}:
		defer func() { <-turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	h.mu.Lock()
	count := len(h.levels)
	h.op++
	op := h.op
	h.mu.Unlock()
	if count == 0 {
		return nil // the outer level was unlocked meanwhile, and all is released
	}
	answer, _, err := c.do(ctx, time.Now(), bound, bound/3, scripts.Level(h.trace.keys, false, h.trace.field, 0, count, op))
	if err != nil {
		return fmt.Errorf("hold count not confirmed, the last Unlock releases the lock in any case: %w", err)
	}
	if !answer.Held && h.newest() != nil {
		h.lose("an unlock found the lock gone", true)
		return ErrLost
	}
	return nil
}
