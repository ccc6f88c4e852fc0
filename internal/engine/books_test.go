package engine

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/locktest"
	"github.com/fencelock/fencelock/internal/redistest"
)

// Inv9: nothing is left on the books of the client, of the watchdog's too, after the last Unlock, whichever way the calls
// ended.
func TestInv9_BooksAreEmpty(t *testing.T) {
	c, err := newTestClient(redistest.New(t))
	locktest.NoError(t, err)
	defer c.Close()
	l := NewLock(c, "l", Tokens{})
	ctx := t.Context()
	held, _, err := l.Acquire(ctx, Request{Forever: true})
	locktest.NoError(t, err)
	inner, _, err := l.Acquire(held, Request{Forever: true})
	locktest.NoError(t, err)
	if _, _, err := l.Acquire(ctx, Request{}); err == nil {
		t.Fatal("locked twice")
	}
	short, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
	defer cancel()
	if _, _, err := l.Acquire(short, Request{Forever: true}); err == nil {
		t.Fatal("locked twice")
	}
	for _, ctx := range []context.Context{inner, held} {
		locktest.NoError(t, l.Unlock(ctx))
	}
	forced, _, err := l.Acquire(ctx, Request{Forever: true})
	locktest.NoError(t, err)
	if ok, err := l.ForceUnlock(ctx); !ok || err != nil {
		t.Fatal(ok, err)
	}
	_ = l.Unlock(forced)
	redistest.Eventually(t, 5*time.Second, func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.releaser.mu.Lock()
		defer c.releaser.mu.Unlock()
		return len(c.locks)+c.held+len(c.releaser.queue) == 0
	}, "the books are empty")
}

// newTestClient returns a client without options.
func newTestClient(rdb redis.UniversalClient) (*Client, error) {
	set, err := MakeSettings([]func(*Settings){})
	if err != nil {
		return nil, err
	}
	return New(rdb, set)
}
