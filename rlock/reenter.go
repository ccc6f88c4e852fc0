package rlock

import (
	"context"
	"fmt"

	"github.com/fencelock/fencelock/scripts"
	"github.com/fencelock/fencelock/watchdog"
)

// reenter adds a level to a hold of the caller's own.
func (a *acquisition) reenter(h *hold) (*level, error) {
	if err := h.state(); err != nil {
		return nil, err
	}
	patience := a.client.patience // with Redis; nobody else is waited for
	if !a.waits() {
		patience = min(patience, onceMore)
	}
	bound, cancel := context.WithTimeout(a.bound, patience)
	defer cancel()
	turn := h.inTurn()
	select {
	case turn <- struct{}{}:
		defer func() { <-turn }()
	case <-bound.Done():
		if a.ctx.Err() != nil {
			return nil, contextError(a.ctx)
		}
		return nil, fmt.Errorf("no answer from Redis to another change of this hold: %w", context.DeadlineExceeded)
	}
	nearest := levelOf(a.ctx)
	h.mu.Lock()
	if n := len(h.levels); n == 0 || !nearest.reaches(h.levels[n-1]) {
		h.mu.Unlock()
		return nil, errOvertaken
	}
	h.op++
	op, count := h.op, len(h.levels)+1
	token := a.fenced && !(h.stable && h.token != 0)
	h.mu.Unlock()

	h.trace.longer(a.lease) // whether an answer comes or not
	sent := watchdog.Now()  // of the first attempt: a repeat of one that was executed extends nothing
	answer, _, err := a.client.do(bound, sent.Time(), patience, a.client.onReentry(),
		a.counted(scripts.Level(a.keys, token, h.trace.field, a.lease, count, op)))
	switch {
	case err != nil:
		h.correct()
		if a.ctx.Err() != nil {
			err = a.ended()
		}
		return nil, err
	case !answer.Held && h.newest() == nil:
		return nil, ErrUnlocked // meanwhile
	case !answer.Held:
		h.lose("a re-entry found the lock gone", true)
		return nil, ErrLost
	}
	a.client.dog.Extend(&h.lease, sent, a.lease)
	lv := new(level)
	lv.begin(a.ctx, a.who, h, a.kept)
	h.mu.Lock()
	if token {
		h.token = answer.Token
	}
	lv.token = h.token
	h.mu.Unlock()
	if err := h.push(lv); err != nil {
		return nil, err
	}
	a.client.dog.Extend(&h.lease, sent, a.lease) // again: with the new level there may be something to renew
	return lv, nil
}

// push opens a level that Redis has counted, if the hold is still there.
func (h *hold) push(lv *level) error {
	h.passed()
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.end != nil:
		lv.end(h.end)
		return h.end.err
	case len(h.levels) == 0:
		lv.end(&ended{lock: h.trace.keys.Lock, err: ErrUnlocked})
		return ErrUnlocked
	}
	h.levels = append(h.levels, lv)
	h.announce()
	return nil
}

// correct sets the count in Redis right behind a re-entry whose outcome is not known. It is a courtesy to those who read
// the count: the next change sets it anyway, and the last Unlock deletes it.
func (h *hold) correct() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.levels) == 0 || h.end != nil {
		return
	}
	h.op++
	op, count := h.op, len(h.levels)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), h.client.unlockTimeout)
		defer cancel()
		_, _ = h.client.store.Do(ctx, scripts.Level(h.trace.keys, false, h.trace.field, 0, count, op))
	}()
}
