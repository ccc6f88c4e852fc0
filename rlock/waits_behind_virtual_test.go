package rlock_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/rlock"
)

// P12: a nested call that Shutdown waits for is not held up.
func TestP12_ANestedCallDuringShutdown(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		c := newClient(t, rdb)
		outer, inner := rlock.NewLock(c, "outer"), rlock.NewLock(c, "inner")
		held := take(t, outer, t.Context())
		ended := locktest.Start(func() error { return c.Shutdown(t.Context()) })
		synctest.Wait()
		began := time.Now()
		in := take(t, inner, held)
		locktest.Equal(t, "it takes", time.Since(began), 0)
		locktest.NoError(t, inner.Unlock(in))
		locktest.NoError(t, outer.Unlock(held))
		locktest.NoError(t, <-ended)
	})
}

// Inv2: a call that waits learns within a poll that a hold of its own holder is lost, which was taken while the call waited.
func TestInv2_TheHoldOfTheSameHolderIsLost(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		l, ctx := rlock.NewLock(newClient(t, rdb), "l"), rlock.NewHolder(t.Context())
		javaHolds(t, rdb, time.Hour)
		one := waits(ctx, l)
		locktest.Sleep(time.Millisecond)
		_ = waits(t.Context(), l)
		locktest.Sleep(time.Millisecond)
		two := waits(ctx, l)
		locktest.Sleep(time.Millisecond)
		m.Del("l")
		m.Publish(lockChannel, "0")
		locktest.NoError(t, (<-one).Err)
		locktest.Sleep(3 * time.Second)
		m.Del("l")
		javaHolds(t, rdb, time.Hour)
		began := time.Now()
		m.Publish(lockChannel, "0")
		got := <-two
		locktest.IsError(t, got.Err, rlock.ErrLost)
		if took := time.Since(began); took > 1200*time.Millisecond {
			t.Errorf("it learns of it after %v", took)
		}
	})
}
