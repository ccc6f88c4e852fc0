package engine

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/redistest"
)

// Inv9: nothing is left on the books of the client, of the watchdog's too, after the last Unlock, whichever way the calls
// ended.
func TestInv9_BooksAreEmpty(t *testing.T) {
	c, err := newTestClient(redistest.New(t))
	locktest.NoError(t, err)
	defer c.Close()
	l := NewLock(c, "l", LockOptions{})
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
		return len(c.locks)+c.held+c.releaser.Len() == 0
	}, "the books are empty")
}

// Books, by which other tests look for what is left, counts each of the three, and not the state of a lock that nobody uses and only a
// timer keeps for a while.
func TestBooks(t *testing.T) {
	redistest.Virtual(t, func(t *testing.T) {
		m, rdb := redistest.Pipe(t)
		c, err := newTestClient(rdb)
		locktest.NoError(t, err)
		defer func() { _ = c.Close() }()
		other, err := newTestClient(redistest.PipeClient(t, m))
		locktest.NoError(t, err)
		defer func() { _ = other.Close() }()
		l, theirs := NewLock(c, "l", LockOptions{}), NewLock(other, "l", LockOptions{})
		locktest.Equal(t, "at first", c.Books(), "")
		held, _, err := theirs.Acquire(t.Context(), Request{Forever: true})
		locktest.NoError(t, err)
		waits := locktest.StartLock(func() (context.Context, error) {
			ctx, _, err := l.Acquire(t.Context(), Request{Forever: true})
			return ctx, err
		})
		locktest.Sleep(time.Second)
		locktest.Equal(t, "while a call waits", c.Books(), "1 locks, 0 holds, 0 releases")
		locktest.NoError(t, theirs.Unlock(held))
		mine := <-waits
		locktest.NoError(t, mine.Err)
		locktest.Equal(t, "while it holds", c.Books(), "1 locks, 1 holds, 0 releases")
		short, _, err := l.Acquire(mine.Ctx, Request{Forever: true})
		locktest.NoError(t, err)
		locktest.NoError(t, l.Unlock(short))
		locktest.NoError(t, l.Unlock(mine.Ctx))
		locktest.Equal(t, "after the last Unlock", c.Books(), "")
		locktest.Equal(t, "states that a timer keeps", c.LockStates(), 1)
		locktest.Sleep(lingerTime + time.Second)
		locktest.Equal(t, "states after that", c.LockStates(), 0)
	})
}

// newTestClient returns a client with these options.
func newTestClient(rdb redis.UniversalClient, opts ...func(*Settings)) (*Client, error) {
	set, err := MakeSettings(opts)
	if err != nil {
		return nil, err
	}
	return New(rdb, set)
}
