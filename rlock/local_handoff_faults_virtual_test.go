package rlock_test

import (
	"context"
	"errors"
	"io"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/rlock"
)

// P56, Inv1: a lease that was asked for, and that Redis has not confirmed, is not passed on.
func TestP56_ALeaseWithoutAnAnswerIsNotPassedOn(t *testing.T) {
	for name, lengthen := range map[string]func(ctx context.Context, l *rlock.Lock, h *rlock.Hold) error{
		"Extend": func(ctx context.Context, _ *rlock.Lock, h *rlock.Hold) error { return h.Extend(ctx, 30*time.Second) },
		"re-entry": func(ctx context.Context, l *rlock.Lock, _ *rlock.Hold) error {
			_, err := l.LockLease(ctx, 30*time.Second)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
				var away atomic.Bool
				locktest.SpyOn(rdb).Wrap(func(ops []string, next func() error) error {
					if away.Load() && (slices.Contains(ops, "renew") || slices.Contains(ops, "level")) {
						return errors.New("pool timeout") // it was not sent
					}
					return next()
				})
				c := newClient(t, rdb, rlock.WithLocalHandoffs(64))
				l := rlock.NewLock(c, "l")
				h, err := l.Acquire(t.Context(), rlock.Lease(5*time.Second))
				locktest.NoError(t, err)
				call := locktest.StartLock(func() (context.Context, error) { return l.LockLease(longContext(t), 30*time.Second) })
				locktest.Sleep(time.Millisecond)
				away.Store(true)
				ctx, cancel := context.WithTimeout(h.Context(), 5*time.Millisecond)
				if lengthen(ctx, l, h) == nil {
					t.Error("it was confirmed")
				}
				cancel()
				away.Store(false)
				locktest.NoError(t, h.Unlock(t.Context()))
				got := <-call
				locktest.NoError(t, got.Err)
				if left, err := l.Remaining(got.Ctx); err != nil || left > m.TTL("l") {
					t.Errorf("%v remain, in Redis %v: %v", left, m.TTL("l"), err)
				}
				locktest.NoError(t, l.Unlock(got.Ctx))
				wantFree(t, m, time.Minute, c)
			})
		})
	}
}

// P56: the hold count of a hold that is taken over is one, whatever became of an inner Unlock before.
func TestP56_AHoldCountOfTheHolderBeforeIsNotPassedOn(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		var away atomic.Bool
		locktest.SpyOn(rdb).Wrap(func(ops []string, next func() error) error {
			if away.Load() && slices.Contains(ops, "level") {
				return locktest.Reply("NOPERM something")
			}
			return next()
		})
		c := newClient(t, rdb, rlock.WithLocalHandoffs(64))
		l := rlock.NewLock(c, "l")
		held := take(t, l, t.Context())
		inner := take(t, l, held)
		call := locktest.StartLock(func() (context.Context, error) { return l.Lock(longContext(t)) })
		locktest.Sleep(time.Millisecond)
		away.Store(true)
		if l.Unlock(inner) == nil {
			t.Error("the inner Unlock has gone well")
		}
		locktest.NoError(t, l.Unlock(held))
		got := <-call
		locktest.NoError(t, got.Err)
		wantHolds(t, l, got.Ctx, 1)
		locktest.NoError(t, l.Unlock(got.Ctx))
	})
}

// P56, Inv2: tokens are reserved only where calls wait, and few where they are times: they do not run ahead of the clock, and are not
// given again after the counter is lost.
func TestP56_FewTokensAreReserved(t *testing.T) {
	for name, c := range map[string]struct {
		options []fenced.Option
		waits   bool
		most    int64
	}{
		"nobody waits":     {},
		"somebody waits":   {waits: true, most: 1000},
		"tokens are times": {waits: true, most: 32, options: []fenced.Option{fenced.WithClockFloor()}},
	} {
		t.Run(name, func(t *testing.T) {
			locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
				l := fenced.NewLock(newClient(t, rdb, rlock.WithLocalHandoffs(1000)), "l", c.options...)
				held, token, err := l.LockAndGetToken(t.Context())
				locktest.NoError(t, err)
				if c.waits {
					before := held
					call := locktest.Start(func() (err error) {
						held, token, err = l.LockAndGetToken(longContext(t))
						return err
					})
					locktest.Sleep(time.Millisecond)
					locktest.NoError(t, l.Unlock(before))
					locktest.NoError(t, <-call)
				}
				text, _ := m.Get("redisson_lock_token:{l}")
				last, err := strconv.ParseInt(text, 10, 64)
				locktest.NoError(t, err)
				locktest.Equal(t, "tokens reserved", last-token, c.most)
				locktest.NoError(t, l.Unlock(held))
			})
		})
	}
}

// P56, P9: an attempt that is repeated, as its answer was lost, has the token that it had, also where others have come meanwhile for
// whom a first attempt would reserve tokens.
func TestP56_ARepeatHasItsToken(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		locktest.NoError(t, m.Set("redisson_lock_token:{l}", "1000"))
		l := fenced.NewLock(newClient(t, rdb, rlock.WithLocalHandoffs(64)), "l")
		calls := make(chan (<-chan error), 2)
		take := func(least int64) {
			calls <- locktest.Start(func() error {
				held, token, err := l.LockAndGetToken(longContext(t))
				if err == nil && token < least {
					t.Errorf("token %d, after %d tokens", token, least-1)
				}
				if err == nil {
					err = l.Unlock(held)
				}
				return err
			})
		}
		var lost atomic.Bool
		locktest.SpyOn(rdb).Wrap(func(_ []string, next func() error) error {
			if err := next(); err != nil || lost.Swap(true) {
				return err
			}
			take(1002)
			time.Sleep(time.Millisecond)
			return io.EOF
		})
		take(1001)
		locktest.NoError(t, <-<-calls)
		locktest.NoError(t, <-<-calls)
	})
}
