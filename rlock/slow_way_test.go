package rlock_test

import (
	"context"
	"io"
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

// P7: a way to Redis that takes longer than the time after which a command is sent again, and less than the bound, brings the answer:
// Unlock and a re-entry take as long as the way, or not much longer, and succeed.
func TestP7_AnswersOfEarlierCopiesCount(t *testing.T) {
	const bound = 100 * time.Millisecond
	for way, most := range map[time.Duration]time.Duration{20 * time.Millisecond: 45 * time.Millisecond, 35 * time.Millisecond: bound} { // there, and as long back
		locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
			warm := rlock.NewLock(newClient(t, rdb), "warm")
			outer := take(t, warm, t.Context())
			locktest.NoError(t, warm.Unlock(take(t, warm, outer)))
			locktest.NoError(t, warm.Unlock(outer)) // the server knows the scripts
			link := &slowLink{way: way}
			l := rlock.NewLock(newClient(t, link.redis(t, m), rlock.WithUnlockTimeout(bound)), "l")
			locktest.NoError(t, l.Unlock(take(t, l, t.Context()))) // the connections are there
			held := take(t, l, t.Context())
			began := time.Now()
			inner := take(t, l, held)
			if took := time.Since(began); took > most {
				t.Errorf("way of %v: the re-entry took %v", way, took)
			}
			for _, ctx := range []context.Context{inner, held} {
				began = time.Now()
				locktest.NoError(t, l.Unlock(ctx))
				if took := time.Since(began); took > most {
					t.Errorf("way of %v: an unlock took %v", way, took)
				}
			}
		})
	}
}

// Inv12: a wait that ends shortly after a release in its own process was a wait for that holder, and not for Redis.
func TestInv12_WaitEndsAfterARelease(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		link := &slowLink{way: 10 * time.Millisecond}
		l := rlock.NewLock(newClient(t, link.redis(t, m)), "l")
		locktest.NoError(t, l.Unlock(take(t, l, t.Context())))
		held := take(t, l, t.Context())
		locktest.Sleep(100 * time.Millisecond)
		waits := locktest.StartLock(func() (context.Context, error) { return l.TryLock(t.Context(), 200*time.Millisecond, 0) })
		locktest.Sleep(150 * time.Millisecond)
		locktest.NoError(t, l.Unlock(held))
		r := <-waits
		locktest.IsError(t, r.Err, rlock.ErrNotAcquired)
	})
}

// Inv12: a call with wait 0 whose context ends while Redis refuses says what Redis has said, and asks no more.
func TestInv12_ContextEndsBetweenTwoTries(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		spy := locktest.SpyOn(rdb)
		l := rlock.NewLock(newClient(t, rdb), "l")
		var over atomic.Bool
		spy.Wrap(func(ops []string, _ func() error) error {
			if over.Load() && slices.Contains(ops, "acquire") {
				t.Error("it asks when its context has ended")
			}
			return locktest.Reply("LOADING Redis is loading the dataset in memory")
		})
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		context.AfterFunc(ctx, func() { over.Store(true) })
		_, err := l.TryLock(ctx, 0, 0)
		locktest.IsError(t, err, context.DeadlineExceeded)
		locktest.ErrorSays(t, err, "LOADING")
		locktest.Sleep(time.Second)
		spy.Wrap(nil)
		locktest.Sleep(time.Minute)
	})
}

// Inv1: the question that a message is a reason for is asked again where it got no answer. A hold with a lease of its own would learn
// of nothing otherwise until its lease is over.
func TestInv1_QuestionWithoutAnAnswer(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		spy := locktest.SpyOn(rdb)
		var log locktest.Log
		l := rlock.NewLock(newClient(t, rdb, rlock.WithLogger(log.Logger())), "l")
		other := rlock.NewLock(newClient(t, redistest.PipeClient(t, m)), "l")
		held, err := l.LockLease(t.Context(), time.Hour)
		locktest.NoError(t, err)
		locktest.Sleep(2 * time.Second) // it listens
		failures := 3
		spy.Wrap(func(ops []string, next func() error) error {
			if failures > 0 && slices.Contains(ops, "renew") {
				failures--
				return io.EOF
			}
			return next()
		})
		freed, err := other.ForceUnlock(t.Context())
		locktest.NoError(t, err)
		locktest.Equal(t, "freed", freed, true)
		locktest.Sleep(10 * time.Second)
		locktest.Equal(t, "failures left", failures, 0)
		locktest.IsError(t, context.Cause(held), rlock.ErrLost)
		locktest.Equal(t, "lines about renewals", len(log.With("renewals failed")), 0)
		_ = l.Unlock(held)
	})
}

// P3: an attempt that Redis runs after the release that was sent behind it, and whose answer comes before the release's, is released at once.
func TestP3_AttemptAfterItsRelease(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		spy := locktest.SpyOn(rdb)
		l := rlock.NewLock(newClient(t, rdb), "l")
		locktest.NoError(t, l.Unlock(take(t, l, t.Context()))) // the server knows the scripts
		first := true
		spy.Wrap(func(ops []string, next func() error) error {
			switch {
			case slices.Contains(ops, "acquire"):
				time.Sleep(150 * time.Millisecond)
				defer time.Sleep(5 * time.Millisecond)
			case first && slices.Contains(ops, "unlock"):
				first = false
				defer time.Sleep(60 * time.Millisecond)
			}
			return next()
		})
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		_, err := l.Lock(ctx)
		locktest.IsError(t, err, context.DeadlineExceeded)
		locktest.Sleep(200 * time.Millisecond)
		if m.Exists("l") {
			t.Error("the lock is still taken")
		}
		locktest.Sleep(time.Minute)
	})
}
