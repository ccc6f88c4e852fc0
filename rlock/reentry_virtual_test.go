package rlock_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/rlock"
)

// warmReentry has the server learn the scripts of a hold and a re-entry: each is one command from then on.
func warmReentry(t *testing.T, l *rlock.Lock) {
	t.Helper()
	outer := take(t, l, t.Context())
	locktest.NoError(t, l.Unlock(take(t, l, outer)))
	locktest.NoError(t, l.Unlock(outer))
}

// Inv1: a re-entry that Redis has confirmed, and whose hold ends before the answer comes, has nothing.
func TestInv1_ReentryOfAHoldThatEndsMeanwhile(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(l *rlock.Lock, held context.Context) error
		want error
	}{
		"unlocked": {end: func(l *rlock.Lock, held context.Context) error { return l.Unlock(held) }, want: rlock.ErrUnlocked},
		"forced open": {end: func(l *rlock.Lock, held context.Context) error {
			_, err := l.ForceUnlock(context.WithoutCancel(held))
			return err
		}, want: rlock.ErrLost},
	} {
		t.Run(name, func(t *testing.T) {
			locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
				spy := locktest.SpyOn(rdb)
				client := newClient(t, rdb)
				l := rlock.NewLock(client, "l")
				warmReentry(t, l)
				held := take(t, l, t.Context())
				spy.Wrap(func(ops []string, next func() error) error {
					err := next()
					if slices.Contains(ops, "level") {
						time.Sleep(100 * time.Millisecond) // executed, and answered late
					}
					return err
				})
				re := locktest.StartLock(func() (context.Context, error) { return l.Lock(context.WithoutCancel(held)) })
				locktest.Sleep(50 * time.Millisecond)
				locktest.NoError(t, c.end(l, held))
				got := <-re
				locktest.IsError(t, got.Err, c.want)
				_ = l.Unlock(held)
				locktest.Sleep(time.Second)
				locktest.Equal(t, "the lock is taken", m.Exists("l"), false)
				locktest.Equal(t, "books", client.Books(), "")
			})
		})
	}
}

// Inv6, Inv12: a re-entry that waits for another change of its hold ends with its context, or after a moment where it does not wait, and says
// which.
func TestInv12_ReentryBehindAChangeThatHangs(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		spy := locktest.SpyOn(rdb)
		l := rlock.NewLock(newClient(t, rdb), "l")
		warmReentry(t, l)
		held := take(t, l, t.Context())
		spy.Wrap(func(ops []string, next func() error) error {
			if slices.Contains(ops, "level") {
				time.Sleep(20 * time.Second)
			}
			return next()
		})
		first := locktest.StartLock(func() (context.Context, error) { return l.Lock(held) })
		locktest.Sleep(time.Millisecond)
		why, began := errors.New("the user's reason"), time.Now()
		ctx, cancel := context.WithTimeoutCause(held, 300*time.Millisecond, why)
		defer cancel()
		_, err := l.Lock(ctx)
		locktest.IsError(t, err, context.DeadlineExceeded, why)
		locktest.Equal(t, "took", time.Since(began), 300*time.Millisecond)
		began = time.Now()
		_, err = l.TryLock(held, 0, 0)
		locktest.IsError(t, err, context.DeadlineExceeded)
		if !strings.Contains(err.Error(), "another change of this hold") {
			t.Errorf("it says %v", err)
		}
		locktest.Equal(t, "took", time.Since(began), time.Second)
		if got := <-first; got.Err == nil {
			t.Error("a re-entry without an answer")
		}
		spy.Wrap(nil)
		locktest.Sleep(time.Minute)
		locktest.NoError(t, l.Unlock(take(t, l, held))) // and the hold goes on
		locktest.NoError(t, l.Unlock(held))
	})
}

// Inv12: a holder that has lost its hold, and has not unlocked it, is told of that by each of its calls, and Redis is not asked.
func TestInv12_CallsAfterALoss(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		spy := locktest.SpyOn(rdb)
		l := rlock.NewLock(newClient(t, rdb), "l")
		holder := rlock.NewHolder(t.Context())
		held := take(t, l, holder)
		freed, err := l.ForceUnlock(t.Context())
		locktest.NoError(t, err)
		locktest.Equal(t, "freed", freed, true)
		spy.Reset()
		for what, ctx := range map[string]context.Context{
			"a nested call": context.WithoutCancel(held), "a call with the context of its hold": held, "a call with another context": holder,
		} {
			for _, c := range lockCalls {
				_, err := c.call(l, ctx)
				if !errors.Is(err, rlock.ErrLost) || !strings.Contains(err.Error(), "forced open") {
					t.Errorf("%s, %s: %v", what, c.name, err)
				}
			}
		}
		locktest.Equal(t, "commands", spy.String(), "")
		locktest.IsError(t, l.Unlock(held), rlock.ErrLost)
		held = take(t, l, holder)
		locktest.NoError(t, l.Unlock(held))
	})
}
