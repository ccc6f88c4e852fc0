package engine

import (
	"context"
	"fmt"
	"sync"

	"github.com/fencelock/fencelock/internal/holder"
	"github.com/fencelock/fencelock/observe/locktrace"
	"github.com/fencelock/fencelock/scripts"
	"github.com/fencelock/fencelock/watchdog"
)

// reenter adds a level to a hold of the caller's own.
func (w *waiter) reenter(h *hold) (*holder.Level, error) {
	if err := h.Err(); err != nil {
		return nil, err
	}
	return w.kind.reenter(w, h)
}

// reenter tells Redis of the level.
func (plain) reenter(w *waiter, h *hold) (*holder.Level, error) {
	patience := w.client.set.Patience // with Redis; nobody else is waited for
	if !w.request.waits() {
		patience = min(patience, onceMore)
	}
	bound, cancel := context.WithTimeout(w.bound.ctx, patience)
	defer cancel()
	if !h.changes.begin(bound) {
		if w.ctx.Err() != nil {
			return nil, holder.ContextError(w.ctx)
		}
		return nil, fmt.Errorf("no answer from Redis to another change of this hold: %w", context.DeadlineExceeded)
	}
	defer h.changes.end()
	count := h.ReentryCount(w.under)
	if count == 0 {
		return nil, errOvertaken
	}
	token, tokens := w.options.Fenced && !(h.stable && h.Token() != 0), 1
	if token && h.series != nil {
		tokens = w.reserves(w.lockState.hasWaiters())
	}

	h.attempts.Extend(w.lease) // whether an answer comes or not
	// of the first attempt: a repeat of one that was executed extends nothing
	sent := watchdog.Now()
	answer, _, err := w.client.commands.Do(bound, sent.Time(), patience, w.client.onReentry(),
		w.counted(scripts.Level(w.keys, token, h.attempts.Field, w.lease, count, h.changes.next()), tokens))
	if scripts.OtherType(err) && !token {
		h.lose(foundGone("a re-entry", err), true)
		return nil, h.lostTo(err)
	} else if scripts.OtherType(err) { // of the counter, or of the lock
		w.client.dog.Ask(&h.Lease)
	}
	h.changes.said(count, err)
	switch {
	case err != nil:
		h.correctCount()
		if w.ctx.Err() != nil {
			return nil, w.contextEnded()
		}
		return nil, w.client.withDial(err, w.began)
	case !answer.Held && h.Count() == 0:
		return nil, ErrUnlocked // meanwhile
	case !answer.Held:
		h.lose(foundGone("a re-entry", nil), true)
		return nil, h.lostTo(nil)
	}
	w.client.dog.Extend(&h.Lease, sent, w.lease)
	switch {
	case !token:
		answer.Token = 0
	case h.series != nil:
		answer.Token = h.series.reserve(&answer, tokens)
	}
	lv, err := h.Open(w.under, w.holder, w.request.Lease == 0, answer.Token)
	if err != nil {
		return nil, err
	}
	// again: with the new level there may be something to renew
	w.client.dog.Extend(&h.Lease, sent, w.lease)
	w.client.presenter.takes(w.lease)
	if w.way = locktrace.Reentry; w.client.set.Trace != nil {
		w.holdNumber = w.client.tracedHolds.number(h)
	}
	return lv, nil
}

// correctCount sets the hold count in Redis to the number of open levels, after a re-entry whose
// outcome is not known. Only those who read the count need that: the next change sets the count
// anyway, and the last Unlock deletes it.
func (h *hold) correctCount() {
	count := h.Count()
	if count == 0 || h.Err() != nil {
		return
	}
	op := h.changes.next()
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), h.lockState.client.set.UnlockTimeout)
		defer cancel()
		_, _ = h.lockState.client.store.Do(ctx, scripts.Level(h.lock.keys, false, h.attempts.Field, 0, count, op))
	}()
}

// countChanges lets the commands that change the count of a hold in Redis go one after the other,
// each with a number of its own (P2).
type countChanges struct {
	mu     sync.Mutex
	turn   chan struct{} // holds a value while such a command is under way; made by the first begin
	above  int           // by how much the count in Redis is above one; unsure where no answer says so
	latest int64         // number; it is whose turn it is that counts on
}

const unsure = -1

// said notes what the answer to a command that sets this count has said.
func (c *countChanges) said(count int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.above = count - 1; err != nil {
		c.above = unsure
	}
}

// isOne tells whether the count in Redis is one, and no change is under way.
func (c *countChanges) isOne() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.above == 0 && len(c.turn) == 0
}

// begin waits until it is the caller's turn; false where ctx has ended first.
func (c *countChanges) begin(ctx context.Context) bool {
	c.mu.Lock()
	if c.turn == nil {
		c.turn = make(chan struct{}, 1)
	}
	turn := c.turn
	c.mu.Unlock()
	select {
	case turn <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

// end ends the caller's turn.
func (c *countChanges) end() { <-c.turn }

// next returns the number of a command, for the caller whose turn it is.
func (c *countChanges) next() int64 {
	c.latest++
	return c.latest
}
