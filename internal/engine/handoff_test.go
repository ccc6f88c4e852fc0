package engine

import (
	"errors"
	"testing"

	"github.com/fencelock/fencelock/internal/locktest"
	"github.com/fencelock/fencelock/scripts"
	"github.com/fencelock/fencelock/watchdog"
)

// P9: what a block has after the command that was to reserve its next tokens: those, if they are there. It skips tokens from before where
// somebody else has taken some in between, and gives none back while more were asked for.
func TestP9_TokensThatWereReservedAhead(t *testing.T) {
	away := errors.New("away")
	for _, c := range []struct {
		what       string
		done       bool
		answer     scripts.Answer
		err        error
		next, last int64 // of the block afterwards
		gone       bool  // the hold
		unused     int64
	}{
		{what: "under way", next: 9, last: 10},
		{what: "the next ones", done: true, answer: scripts.Answer{Held: true, Token: 15}, next: 9, last: 15, unused: 7},
		{what: "others have taken some in between", done: true, answer: scripts.Answer{Held: true, Token: 20}, next: 16, last: 20, unused: 5},
		{what: "no answer", done: true, err: away, next: 9, last: 10},
		{what: "an answer that does not count", done: true, answer: scripts.Answer{Held: true, Token: 15}, err: away, next: 9, last: 10},
		{what: "the hold is gone", done: true, next: 9, last: 10, gone: true},
	} {
		f := new(inflight)
		f.answer, f.err, f.sentAt = c.answer, c.err, watchdog.Now()
		f.done.Store(c.done)
		b := &tokenBlock{next: 9, last: 10, prefetch: f, prefetchCount: 5}
		locktest.Equal(t, c.what+": the hold is gone", b.holdGone(), c.gone)
		b.takePrefetched()
		if b.next != c.next || b.last != c.last {
			t.Errorf("%s: the block has the tokens %d to %d, want %d to %d", c.what, b.next, b.last, c.next, c.last)
		}
		if taken := b.prefetch == nil; taken != (c.last != 10) || taken != (b.sentAt == f.sentAt) {
			t.Errorf("%s: taken %v, the block is as old as the command: %v", c.what, taken, b.sentAt == f.sentAt)
		}
		locktest.Equal(t, c.what+": unused tokens", b.unusedTokens(), c.unused)
	}
	var none *tokenBlock
	locktest.Equal(t, "unused tokens of no block", none.unusedTokens(), 0)
	none = new(tokenBlock)
	locktest.Equal(t, "a block that asked for nothing has lost its hold", none.holdGone(), false)
}
