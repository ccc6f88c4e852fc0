package rlock_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/rlock"
)

// Inv12: Redis has never answered: nobody may be told that somebody holds the lock, the second in the queue neither.
func TestSilenceIsNotAHolder(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		spy := locktest.SpyOn(rdb)
		l := rlock.NewLock(newClient(t, rdb), "l")
		spy.Wrap(func(ops []string, next func() error) error {
			time.Sleep(20 * time.Second)
			return next()
		})
		a := locktest.StartLock(func() (context.Context, error) { return l.TryLock(t.Context(), 1000*time.Millisecond, 0) })
		time.Sleep(300 * time.Millisecond)
		b := locktest.StartLock(func() (context.Context, error) { return l.TryLock(t.Context(), 1000*time.Millisecond, 0) })
		locktest.IsError(t, (<-a).Err, context.DeadlineExceeded)
		if err := (<-b).Err; errors.Is(err, rlock.ErrNotAcquired) {
			t.Errorf("nobody holds it, Redis never answered: %v", err)
		}
		spy.Wrap(nil)
		locktest.Sleep(60 * time.Second)
	})
}

// A minute after Redis was silent nothing is left of that.
func TestSilenceIsForgotten(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		spy := locktest.SpyOn(rdb)
		l := rlock.NewLock(newClient(t, rdb), "l")
		held := take(t, l, t.Context())
		var freeze atomic.Bool
		spy.Wrap(func(ops []string, next func() error) error {
			if freeze.Load() && slices.Contains(ops, "acquire") {
				time.Sleep(2 * time.Second)
			}
			return next()
		})
		freeze.Store(true)
		_, err := l.TryLock(t.Context(), 1500*time.Millisecond, 0)
		locktest.IsError(t, err, rlock.ErrNotAcquired)
		freeze.Store(false)
		locktest.Sleep(60 * time.Second)
		_, err = l.TryLock(t.Context(), 100*time.Millisecond, 0)
		if !errors.Is(err, rlock.ErrNotAcquired) {
			t.Errorf("a minute later, Redis well: %v", err)
		}
		locktest.NoError(t, l.Unlock(held))
	})
}

// A re-entry that an orderly Unlock was faster than has lost nothing.
func TestReentryOvertakenByUnlock(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		spy := locktest.SpyOn(rdb)
		l := rlock.NewLock(newClient(t, rdb), "l")
		held := take(t, l, context.WithoutCancel(t.Context()))
		spy.Wrap(func(ops []string, next func() error) error {
			if slices.Contains(ops, "level") {
				time.Sleep(100 * time.Millisecond)
			}
			return next()
		})
		re := locktest.StartLock(func() (context.Context, error) { return l.Lock(context.WithoutCancel(held)) })
		locktest.Sleep(50 * time.Millisecond)
		locktest.NoError(t, l.Unlock(held))
		got := <-re
		locktest.IsError(t, got.Err, rlock.ErrUnlocked)
	})
}

// Inv8: an Unlock that finds the key gone has told nobody by a message; the waiters of its own client look.
func TestWaiterAfterAnUnlockThatFoundNothing(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		l := rlock.NewLock(newClient(t, rdb), "l")
		held := take(t, l, t.Context())
		w := locktest.StartLock(func() (context.Context, error) { return l.Lock(t.Context()) })
		locktest.Sleep(22 * time.Second)
		m.Del("l")
		began := time.Now()
		locktest.IsError(t, l.Unlock(held), rlock.ErrLost)
		got := <-w
		locktest.NoError(t, got.Err)
		if got.At.Sub(began) > time.Second {
			t.Error("slept on a lock that its client knew to be free")
		}
	})
}

// A re-entry with wait 0 says what it has to say for a moment, as any call with wait 0.
func TestReentryThatDoesNotWait(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		spy := locktest.SpyOn(rdb)
		l := rlock.NewLock(newClient(t, rdb), "l")
		held := take(t, l, t.Context())
		spy.Wrap(func(ops []string, next func() error) error {
			if slices.Contains(ops, "level") {
				return &net.OpError{Op: "dial", Err: io.EOF}
			}
			return next()
		})
		began := time.Now()
		_, err := l.TryLock(held, 0, 0)
		if err == nil {
			t.Error("it re-entered without Redis")
		}
		if time.Since(began) > 1600*time.Millisecond {
			t.Errorf("it took %v", time.Since(began))
		}
		spy.Wrap(nil)
	})
}

// Where something refuses several slots in one command, the renewals are sent one by one, and in time.
func TestRenewalsOneByOne(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		rdb.AddHook(refuseSeveralSlots)
		c := newClient(t, rdb, rlock.WithLease(3*time.Second))
		var ctxs []context.Context
		for i := range 100 {
			h, err := rlock.NewLock(c, fmt.Sprint("l", i)).Lock(t.Context())
			locktest.NoError(t, err)
			ctxs = append(ctxs, h)
		}
		locktest.Sleep(20 * time.Second)
		lost := 0
		for _, h := range ctxs {
			if h.Err() != nil {
				lost++
			}
		}
		if lost > 0 {
			t.Errorf("%d of 100 lost, e.g. %v", lost, ctxs[0].Err())
		}
		locktest.NoError(t, c.Close())
		locktest.Sleep(time.Second) // for what is under way
	})
}

// refuseSeveralSlots answers a command that renews several locks as a server of a cluster does.
var refuseSeveralSlots = locktest.Hook(func(_ context.Context, cmd redis.Cmder, send func() error) error {
	if slices.Contains(locktest.Ops(cmd.Args()), "renew") {
		time.Sleep(12 * time.Millisecond)
		if fmt.Sprint(cmd.Args()[2]) != "1" {
			err := locktest.Reply("CROSSSLOT Keys in request don't hash to the same slot")
			cmd.SetErr(err)
			return err
		}
	}
	return send()
})
