package fenced_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/internal/redistest"
	"github.com/fencelock/fencelock/rlock"
)

func virtual(t *testing.T, test func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client)) {
	t.Helper()
	redistest.Virtual(t, func(t *testing.T) {
		m, rdb := redistest.Pipe(t)
		test(t, m, rdb)
	})
}

// An acquire that nobody waits behind takes one token, as without the option.
func TestBlocksUncontended(t *testing.T) {
	_, _, l := newLock(t, fenced.WithTokenBlocks())
	for want := range int64(5) {
		held := take(t, l, t.Context(), want+1)
		current(t, l, held, want+1)
		noError(t, l.Unlock(held))
	}
	held, token, err := l.TryLockAndGetToken(t.Context(), 0, 0)
	noError(t, err)
	equal(t, "token", token, 6)
	inner := take(t, l, held, 7)
	current(t, l, held, 7)
	noError(t, l.Unlock(inner))
	noError(t, l.Unlock(held))
}

// A holder whose lock was passed on within a block is as much a former one as any other: its context has ended, it has
// neither a token nor a hold, although Redis has the same field as before. What it still calls does not disturb the new
// holder.
func TestBlocksFormerHolder(t *testing.T) {
	virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		l := fenced.NewLock(newClient(t, rdb), "l", fenced.WithTokenBlocks())
		first := take(t, l, t.Context(), 1)
		var former []context.Context
		var fields []string
		var all sync.WaitGroup
		for i := range int64(4) {
			all.Go(func() {
				held := take(t, l, t.Context(), i+2)
				current(t, l, held, i+2)
				names, _ := m.HKeys("l")
				fields = append(fields, names...)
				count, err := l.HoldCount(held)
				noError(t, err)
				equal(t, "hold count", count, 1)
				for _, old := range former {
					isError(t, old.Err(), rlock.ErrUnlocked, context.Canceled)
					isError(t, context.Cause(old), rlock.ErrUnlocked)
					isError(t, l.Check(old), rlock.ErrUnlocked)
					_, err := l.Token(old)
					isError(t, err, rlock.ErrUnlocked)
					_, ok := fenced.TokenFrom(old, "l")
					equal(t, "TokenFrom of the former holder", ok, false)
					count, err := l.HoldCount(old)
					noError(t, err)
					equal(t, "hold count of the former holder", count, 0)
					is, err := l.IsHeld(old)
					noError(t, err)
					equal(t, "held by the former holder", is, false)
					isError(t, l.Unlock(old), rlock.ErrNotHeld)
				}
				noError(t, l.Check(held))
				former = append(former, held)
				noError(t, l.Unlock(held))
			})
			synctest.Wait()
		}
		noError(t, l.Unlock(first))
		all.Wait()
		for _, f := range fields {
			equal(t, "the block's field", f, fields[0])
		}
		time.Sleep(time.Millisecond)
		locked, err := l.IsLocked(t.Context())
		noError(t, err)
		equal(t, "locked at the end", locked, false)
	})
}

// WithStableToken and WithTokenBlocks go together: a re-entry keeps the block's token.
func TestBlocksWithStableToken(t *testing.T) {
	virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		l := fenced.NewLock(newClient(t, rdb), "l", fenced.WithTokenBlocks(), fenced.WithStableToken())
		first := take(t, l, t.Context(), 1)
		last := int64(1)
		var all sync.WaitGroup
		for i := range 4 {
			all.Go(func() {
				held, token, err := l.LockAndGetToken(t.Context())
				noError(t, err)
				if token <= last {
					t.Errorf("token %d after %d", token, last)
				}
				last = token
				if i == 1 {
					inner := take(t, l, held, token)
					current(t, l, held, token)
					noError(t, l.Unlock(inner))
				}
				noError(t, l.Unlock(held))
			})
			synctest.Wait()
		}
		noError(t, l.Unlock(first))
		all.Wait()
	})
}
