package rlock_test

import (
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/rlock"
)

// Inv12: ErrNotAcquired says who has the lock: another call of the same holder, or somebody else.
func TestInv12_HeldByTheSameHolder(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		c := newClient(t, rdb)
		l := rlock.NewLock(c, "l")
		ctx := rlock.NewHolder(t.Context())
		held := take(t, l, ctx)
		inner := take(t, l, held) // in a goroutine that shares held
		for _, wait := range []time.Duration{0, time.Second} {
			_, err := l.TryLock(held, wait, 0)
			locktest.IsError(t, err, rlock.ErrNotAcquired)
			locktest.ErrorSays(t, err, "not acquired: held by another call of the same holder")
			_, err = l.TryLock(ctx, wait, 0)
			locktest.ErrorSays(t, err, "not acquired: held by another call of the same holder")
			_, err = l.TryLock(rlock.NewHolder(ctx), wait, 0)
			locktest.IsError(t, err, rlock.ErrNotAcquired)
			locktest.ErrorSays(t, err, "not acquired: held by someone else")
		}
		locktest.NoError(t, l.Unlock(inner))
		locktest.NoError(t, l.Unlock(held))
	})
}
