package rlock_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/redistest"
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

// Inv12: a call asks at once that becomes the first while its client is in no line: the pause after an error is that of the one before.
func TestInv12_ThePauseOfTheOneBefore(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		spy, l := locktest.SpyOn(rdb), rlock.NewLock(newClient(t, rdb), "l")
		m.SetError("LOADING Redis is loading the dataset in memory")
		ctx, cancel := context.WithCancel(t.Context())
		one := waits(ctx, l)
		locktest.Sleep(5 * time.Second)
		_ = waits(t.Context(), l)
		synctest.Wait()
		spy.Reset()
		cancel()
		<-one
		synctest.Wait()
		locktest.Equal(t, "attempts of the next one", spy.Count("acquire"), 1)
	})
}

// P32: a waiter that leads looks as soon as one does whose looks were not in vain so far, however often the one before has looked.
func TestP32_LooksOfTheNextCall(t *testing.T) {
	const poll = 30 * time.Millisecond
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		javaHolds(t, rdb, time.Hour)
		p := lineNew(t, m, rlock.WithPollInterval(poll))
		ctx, cancel := context.WithCancel(t.Context())
		one := p.waits(t, ctx)
		p.waits(t, t.Context())
		locktest.Sleep(3 * time.Second)
		looks := func(within time.Duration) {
			t.Helper()
			began := time.Now()
			for p.spy.Reset(); p.spy.Count("acquire") == 0; locktest.Sleep(time.Millisecond) {
			}
			if took := time.Since(began); took > within {
				t.Errorf("it looks after %v, want %v at most", took, within)
			}
		}
		looks(10 * poll)
		cancel()
		<-one
		looks(10*poll + time.Millisecond)
		looks(2*poll + time.Millisecond)
	})
}

// Books, by which other tests look for what is left, counts each of the three, and not the state of a lock that nobody uses and only a
// timer keeps for a while.
func TestBooks(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		c := newClient(t, rdb)
		l, theirs := rlock.NewLock(c, "l"), rlock.NewLock(newClient(t, redistest.PipeClient(t, m)), "l")
		locktest.Equal(t, "at first", c.Books(), "")
		held := take(t, theirs, t.Context())
		call := waits(t.Context(), l)
		locktest.Sleep(time.Second)
		locktest.Equal(t, "while a call waits", c.Books(), "1 locks, 0 holds, 0 releases")
		locktest.NoError(t, theirs.Unlock(held))
		mine := <-call
		locktest.NoError(t, mine.Err)
		locktest.Equal(t, "while it holds", c.Books(), "1 locks, 1 holds, 0 releases")
		locktest.NoError(t, l.Unlock(take(t, l, mine.Ctx)))
		locktest.NoError(t, l.Unlock(mine.Ctx))
		locktest.Equal(t, "after the last Unlock", c.Books(), "")
		locktest.Equal(t, "states that a timer keeps", c.LockStates(), 1)
		locktest.Sleep(3 * time.Second)
		locktest.Equal(t, "states after that", c.LockStates(), 0)
	})
}

// Inv12: who waits while there are errors only is told the last of them.
func TestInv12_TheLastErrorIsTold(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		l := rlock.NewLock(newClient(t, rdb, rlock.WithPatience(10*time.Second)), "l")
		m.SetError("LOADING one")
		began, call := time.Now(), waits(t.Context(), l)
		locktest.Sleep(6 * time.Second)
		m.SetError("LOADING two")
		got := <-call
		locktest.ErrorSays(t, got.Err, "LOADING two")
		if took := got.At.Sub(began); took < 10*time.Second || took > 12*time.Second {
			t.Errorf("it is told after %v", took)
		}
		m.SetError("")
	})
}

// Inv12: a waiter whose attempt has no answer counts its patience from that attempt, where Redis has answered another call of its client
// since the errors before.
func TestInv12_PatienceAfterAnAnswerToAnother(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		const patience = 10 * time.Second
		var swallowed atomic.Bool
		began, end := time.Now(), make(chan struct{})
		defer close(end)
		locktest.SpyOn(rdb).Wrap(func(_ []string, next func() error) error {
			switch {
			case time.Since(began) < patience-600*time.Millisecond:
				return locktest.Reply("LOADING")
			case swallowed.CompareAndSwap(false, true):
				<-end
			}
			return next()
		})
		c := newClient(t, rdb, rlock.WithPatience(patience))
		l := rlock.NewLock(c, "l")
		call := waits(t.Context(), l)
		time.Sleep(patience - 50*time.Millisecond)
		locktest.Equal(t, "an attempt of the waiter has no answer", swallowed.Load(), true)
		_, err := l.TryLock(t.Context(), 0, 0) // which Redis answers
		locktest.NoError(t, err)
		locktest.Sleep(time.Second)
		go func() { _ = c.Close() }()
		locktest.IsError(t, (<-call).Err, rlock.ErrClosed) // Redis has answered a second before
	})
}
