package rlock

import (
	"context"
	"testing"
	"time"

	"github.com/fencelock/fencelock/internal/redistest"
)

// Inv9: nothing is left on the books of the client, of the watchdog's too, after the last Unlock, whichever way the calls
// ended.
func TestInv9_BooksAreEmpty(t *testing.T) {
	c, err := New(redistest.New(t))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	l := NewLock(c, "l")
	ctx := t.Context()
	held, err := l.Lock(ctx)
	if err != nil {
		t.Fatal(err)
	}
	inner, err := l.Lock(held)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.TryLock(ctx, 0, 0); err == nil {
		t.Fatal("locked twice")
	}
	short, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
	defer cancel()
	if _, err := l.Lock(short); err == nil {
		t.Fatal("locked twice")
	}
	for _, ctx := range []context.Context{inner, held} {
		if err := l.Unlock(ctx); err != nil {
			t.Fatal(err)
		}
	}
	forced, err := l.Lock(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if ok, err := l.ForceUnlock(ctx); !ok || err != nil {
		t.Fatal(ok, err)
	}
	_ = l.Unlock(forced)
	redistest.Eventually(t, 5*time.Second, func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.releaser.mu.Lock()
		defer c.releaser.mu.Unlock()
		return len(c.queues)+c.held+len(c.releaser.open) == 0
	}, "the books are empty: %d queues, %d holds", len(c.queues), c.held)
}
