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
	"github.com/fencelock/fencelock/internal/locktest"
	"github.com/fencelock/fencelock/rlock"
)

// An acquire that nobody waits behind takes one token, as without the option.
func TestBlocksUncontended(t *testing.T) {
	_, _, l := newLock(t, fenced.WithTokenBlocks())
	for want := range int64(5) {
		held := take(t, l, t.Context(), want+1)
		current(t, l, held, want+1)
		locktest.NoError(t, l.Unlock(held))
	}
	held, token, err := l.TryLockAndGetToken(t.Context(), 0, 0)
	locktest.NoError(t, err)
	locktest.Equal(t, "token", token, 6)
	inner := take(t, l, held, 7)
	current(t, l, held, 7)
	locktest.NoError(t, l.Unlock(inner))
	locktest.NoError(t, l.Unlock(held))
}

// A holder whose lock was passed on within a block is as much a former one as any other: its context has ended, it has
// neither a token nor a hold, although Redis has the same field as before. What it still calls does not disturb the new
// holder.
func TestBlocksFormerHolder(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
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
				locktest.NoError(t, err)
				locktest.Equal(t, "hold count", count, 1)
				for _, old := range former {
					locktest.IsError(t, old.Err(), rlock.ErrUnlocked, context.Canceled)
					locktest.IsError(t, context.Cause(old), rlock.ErrUnlocked)
					locktest.IsError(t, l.Check(old), rlock.ErrUnlocked)
					_, err := l.Token(old)
					locktest.IsError(t, err, rlock.ErrUnlocked)
					_, ok := fenced.TokenFrom(old, "l")
					locktest.Equal(t, "TokenFrom of the former holder", ok, false)
					count, err := l.HoldCount(old)
					locktest.NoError(t, err)
					locktest.Equal(t, "hold count of the former holder", count, 0)
					is, err := l.IsHeld(old)
					locktest.NoError(t, err)
					locktest.Equal(t, "held by the former holder", is, false)
					locktest.IsError(t, l.Unlock(old), rlock.ErrNotHeld)
				}
				locktest.NoError(t, l.Check(held))
				former = append(former, held)
				locktest.NoError(t, l.Unlock(held))
			})
			synctest.Wait()
		}
		locktest.NoError(t, l.Unlock(first))
		all.Wait()
		for _, f := range fields {
			locktest.Equal(t, "the block's field", f, fields[0])
		}
		time.Sleep(time.Millisecond)
		locked, err := l.IsLocked(t.Context())
		locktest.NoError(t, err)
		locktest.Equal(t, "locked at the end", locked, false)
	})
}

// WithStableToken and WithTokenBlocks go together: a re-entry keeps the block's token.
func TestBlocksWithStableToken(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		l := fenced.NewLock(newClient(t, rdb), "l", fenced.WithTokenBlocks(), fenced.WithStableToken())
		first := take(t, l, t.Context(), 1)
		last := int64(1)
		var all sync.WaitGroup
		for i := range 4 {
			all.Go(func() {
				held, token, err := l.LockAndGetToken(t.Context())
				locktest.NoError(t, err)
				if token <= last {
					t.Errorf("token %d after %d", token, last)
				}
				last = token
				if i == 1 {
					inner := take(t, l, held, token)
					current(t, l, held, token)
					locktest.NoError(t, l.Unlock(inner))
				}
				locktest.NoError(t, l.Unlock(held))
			})
			synctest.Wait()
		}
		locktest.NoError(t, l.Unlock(first))
		all.Wait()
	})
}
