package rlock_test

import (
	"io"
	"net"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/fencelock/fencelock/rlock"
)

// Inv1, Inv3, P6: the answer of a re-entry is lost, and its repeat, which Redis has nothing to do for, is answered. The
// deadline counts from the attempt that was executed.
func TestRepeatedReentryPromisesNoMore(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		spy := locktest.SpyOn(rdb)
		l := rlock.NewLock(newClient(t, rdb), "l")
		other := rlock.NewLock(newClient(t, redistest.PipeClient(t, m)), "l")
		held, err := l.LockLease(t.Context(), 5*time.Second)
		locktest.NoError(t, err)
		var n atomic.Int32
		spy.Wrap(func(ops []string, next func() error) error {
			if slices.Contains(ops, "level") && n.Load() == 0 {
				if err := next(); err != nil {
					return err
				}
				n.Add(1)
				time.Sleep(1500 * time.Millisecond) // the answer is on a connection that breaks
				return &net.OpError{Op: "read", Err: io.EOF}
			}
			return next()
		})
		inner, err := l.LockLease(held, 10*time.Second)
		locktest.NoError(t, err)
		direct := redistest.PipeClient(t, m)
		for direct.Exists(t.Context(), "l").Val() == 1 {
			time.Sleep(time.Millisecond)
		}
		h2, err := other.TryLock(t.Context(), 0, 0)
		if err == nil && h2.Err() == nil && inner.Err() == nil && held.Err() == nil && l.Check(inner) == nil {
			t.Error("two holders are alive")
		}
	})
}

// The same where the watchdog's renewals fail from then on.
func TestRepeatedReentryOfARenewedHold(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		spy := locktest.SpyOn(rdb)
		l := rlock.NewLock(newClient(t, rdb), "l")
		other := rlock.NewLock(newClient(t, redistest.PipeClient(t, m)), "l")
		held, err := l.Lock(t.Context())
		locktest.NoError(t, err)
		var n atomic.Int32
		spy.Wrap(func(ops []string, next func() error) error {
			if slices.Contains(ops, "renew") {
				return &net.OpError{Op: "dial", Err: io.EOF}
			}
			if slices.Contains(ops, "level") && n.Load() == 0 {
				if err := next(); err != nil {
					return err
				}
				n.Add(1)
				time.Sleep(1500 * time.Millisecond)
				return &net.OpError{Op: "read", Err: io.EOF}
			}
			return next()
		})
		locktest.Sleep(5 * time.Second)
		inner, err := l.Lock(held)
		locktest.NoError(t, err)
		direct := redistest.PipeClient(t, m)
		for direct.Exists(t.Context(), "l").Val() == 1 {
			time.Sleep(time.Millisecond)
		}
		h2, err := other.TryLock(t.Context(), 0, 0)
		if err == nil && h2.Err() == nil && inner.Err() == nil && held.Err() == nil && l.Check(inner) == nil {
			t.Error("two holders are alive")
		}
		spy.Wrap(nil)
	})
}
