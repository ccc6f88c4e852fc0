package rlock_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/rlock"
)

// An Unlock of an inner level tells Redis the count. It says what it has not been told, and loses nothing that is there.

// Inv7: an inner Unlock that gets no answer is back within its bound. The hold goes on, and its last Unlock releases the lock.
func TestInv7_InnerUnlockWithoutAnAnswer(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		c := newClient(t, rdb, rlock.WithUnlockTimeout(time.Second))
		l := rlock.NewLock(c, "l")
		outer := take(t, l, t.Context())
		inner := take(t, l, outer)
		thaw := make(chan struct{})
		spy := locktest.SpyOn(rdb)
		spy.Wrap(func(ops []string, next func() error) error {
			if slices.Contains(ops, "level") {
				<-thaw
			}
			return next()
		})
		began := time.Now()
		err := l.Unlock(inner)
		locktest.Equal(t, "the inner Unlock took", time.Since(began), time.Second)
		locktest.ErrorSays(t, err, "the last Unlock releases the lock in any case")
		locktest.IsNotError(t, err, rlock.ErrLost, rlock.ErrNotHeld)
		locktest.NoError(t, outer.Err())
		locktest.NoError(t, l.Check(outer))
		close(thaw)
		locktest.Sleep(time.Second)
		wantHolds(t, l, outer, 1)
		locktest.NoError(t, l.Unlock(outer))
		wantFree(t, m, 0, c)
	})
}

// Inv7: an inner Unlock behind a re-entry that gets no answer waits for its turn no longer than its bound.
func TestInv7_InnerUnlockBehindAReentry(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		c := newClient(t, rdb, rlock.WithUnlockTimeout(time.Second))
		l := rlock.NewLock(c, "l")
		outer := take(t, l, t.Context())
		inner := take(t, l, outer)
		thaw := make(chan struct{})
		spy := locktest.SpyOn(rdb)
		spy.Wrap(func(ops []string, next func() error) error {
			if slices.Contains(ops, "level") {
				<-thaw
			}
			return next()
		})
		reentry := locktest.StartLock(func() (context.Context, error) { return l.Lock(context.WithoutCancel(inner)) }) // inner ends meanwhile
		locktest.Sleep(time.Millisecond)
		began := time.Now()
		err := l.Unlock(inner)
		locktest.Equal(t, "the inner Unlock took", time.Since(began), time.Second)
		locktest.IsError(t, err, context.DeadlineExceeded)
		locktest.IsNotError(t, err, rlock.ErrLost, rlock.ErrNotHeld)
		locktest.NoError(t, outer.Err())
		close(thaw)
		r := <-reentry
		locktest.NoError(t, r.Err)
		locktest.Sleep(time.Second)
		locktest.NoError(t, l.Unlock(r.Ctx))
		wantHolds(t, l, outer, 1)
		locktest.NoError(t, l.Unlock(outer))
		wantFree(t, m, 0, c)
	})
}

// An inner Unlock that the last one was faster than has lost nothing.
func TestInnerUnlockOvertakenByTheLast(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		c := newClient(t, rdb)
		l := rlock.NewLock(c, "l")
		outer := take(t, l, t.Context())
		inner := take(t, l, outer)
		spy := locktest.SpyOn(rdb)
		spy.Wrap(func(ops []string, next func() error) error {
			if slices.Contains(ops, "level") {
				time.Sleep(100 * time.Millisecond) // on its way
			}
			return next()
		})
		unlocked := locktest.Start(func() error { return l.Unlock(inner) })
		locktest.Sleep(10 * time.Millisecond)
		locktest.NoError(t, l.Unlock(outer))
		locktest.NoError(t, <-unlocked)
		locktest.Equal(t, "levels that were told", spy.Count("level"), 1)
		wantFree(t, m, 0, c)
	})
}

// An inner Unlock that finds the lock gone ends the hold at once. Redis has said it, so that the last Unlock sends nothing.
func TestInnerUnlockFindsItGone(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		spy := locktest.SpyOn(rdb)
		l := rlock.NewLock(newClient(t, rdb), "l")
		outer := take(t, l, t.Context())
		inner := take(t, l, outer)
		m.Del("l")
		locktest.IsError(t, l.Unlock(inner), rlock.ErrLost)
		locktest.IsError(t, outer.Err(), rlock.ErrLost, context.Canceled)
		locktest.ErrorSays(t, l.Check(outer), "an unlock found the lock gone")
		locktest.IsError(t, l.Unlock(outer), rlock.ErrLost)
		locktest.Sleep(time.Second)
		locktest.Equal(t, "releases of what is gone", spy.Count("unlock"), 0)
	})
}

// An inner Unlock of a hold that is known to be lost asks nobody, and says how it was lost.
func TestInnerUnlockOfALostHold(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		spy := locktest.SpyOn(rdb)
		l := rlock.NewLock(newClient(t, rdb), "l")
		outer := take(t, l, t.Context())
		inner := take(t, l, outer)
		freed, err := l.ForceUnlock(t.Context())
		locktest.NoError(t, err)
		locktest.Equal(t, "freed", freed, true)
		spy.Reset()
		err = l.Unlock(inner)
		locktest.IsError(t, err, rlock.ErrLost)
		locktest.ErrorSays(t, err, "forced open")
		locktest.Equal(t, "commands of the inner Unlock", spy.Commands(), 0)
		locktest.IsError(t, l.Unlock(outer), rlock.ErrLost)
	})
}
