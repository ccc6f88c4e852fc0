package engine

import (
	"context"
	"fmt"

	"github.com/fencelock/fencelock/observe/locktrace"
	"github.com/fencelock/fencelock/scripts"
	"github.com/fencelock/fencelock/watchdog"
)

// reenter adds a level to a hold of the caller's own.
func (w *waiter) reenter(h *hold) (*level, error) {
	if err := h.err(); err != nil {
		return nil, err
	}
	patience := w.client.set.Patience // with Redis; nobody else is waited for
	if !w.request.waits() {
		patience = min(patience, onceMore)
	}
	bound, cancel := context.WithTimeout(w.waitCtx, patience)
	defer cancel()
	turn := h.changes()
	select {
	case turn <- struct{}{}:
		defer func() { <-turn }()
	case <-bound.Done():
		if w.ctx.Err() != nil {
			return nil, contextError(w.ctx)
		}
		return nil, fmt.Errorf("no answer from Redis to another change of this hold: %w", context.DeadlineExceeded)
	}
	nearest := levelOf(w.ctx)
	h.mu.Lock()
	if n := len(h.levels); n == 0 || !nearest.reaches(h.levels[n-1]) {
		h.mu.Unlock()
		return nil, errOvertaken
	}
	h.lastChange++
	op, count := h.lastChange, len(h.levels)+1
	token := w.tokens.Fenced && !(h.stable && h.token != 0)
	h.mu.Unlock()

	h.attempts.Extend(w.lease) // whether an answer comes or not
	sent := watchdog.Now()     // of the first attempt: a repeat of one that was executed extends nothing
	answer, _, err := w.client.commands.Do(bound, sent.Time(), patience, w.client.onReentry(),
		w.tokens.counted(scripts.Level(w.keys, token, h.attempts.Field, w.lease, count, op)))
	switch {
	case err != nil:
		h.correctCount()
		if w.ctx.Err() != nil {
			return nil, w.contextEnded()
		}
		return nil, w.client.withDial(err, w.began)
	case !answer.Held && h.newest() == nil:
		return nil, ErrUnlocked // meanwhile
	case !answer.Held:
		h.lose("a re-entry found the lock gone", true)
		return nil, ErrLost
	}
	w.client.dog.Extend(&h.lease, sent, w.lease)
	lv := new(level)
	lv.begin(w.ctx, w.holder, h, w.renewable)
	h.mu.Lock()
	if token {
		h.token = answer.Token
	}
	lv.token = h.token
	h.mu.Unlock()
	if err := h.addLevel(lv); err != nil {
		return nil, err
	}
	w.client.dog.Extend(&h.lease, sent, w.lease) // again: with the new level there may be something to renew
	w.client.presenter.takes(w.lease)
	if w.way = locktrace.Reentry; w.client.set.Trace != nil {
		w.holdNumber = w.client.tracedHolds.number(h)
	}
	return lv, nil
}

// addLevel opens a level that Redis has counted, if the hold is still there.
func (h *hold) addLevel(lv *level) error {
	h.checkLease()
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.end != nil:
		lv.end(h.end)
		return h.end.err
	case len(h.levels) == 0:
		lv.end(&endError{lock: h.attempts.Keys.Lock, err: ErrUnlocked})
		return ErrUnlocked
	}
	h.levels = append(h.levels, lv)
	h.notifyChanged()
	return nil
}

// correctCount sets the hold count in Redis to the number of open levels, after a re-entry whose outcome is not known. Only those who read
// the count need that: the next change sets the count anyway, and the last Unlock deletes it.
func (h *hold) correctCount() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.levels) == 0 || h.end != nil {
		return
	}
	h.lastChange++
	op, count := h.lastChange, len(h.levels)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), h.client.set.UnlockTimeout)
		defer cancel()
		_, _ = h.client.store.Do(ctx, scripts.Level(h.attempts.Keys, false, h.attempts.Field, 0, count, op))
	}()
}
