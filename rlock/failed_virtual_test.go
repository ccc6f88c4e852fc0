package rlock_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/rlock"
)

// The context that a failed acquire returns is no level of the hold outside: Unlock with it releases nothing (Inv7).

// reentrant are the methods that plain and fenced locks share.
type reentrant interface {
	Lock(ctx context.Context) (context.Context, error)
	TryLock(ctx context.Context, wait, lease time.Duration) (context.Context, error)
	Unlock(ctx context.Context) error
	Check(ctx context.Context) error
	Remaining(ctx context.Context) (time.Duration, error)
	HoldCount(ctx context.Context) (int, error)
	IsHeld(ctx context.Context) (bool, error)
}

// withoutToken is a fenced lock with the methods of one without tokens.
type (
	withoutToken struct{ *withToken }
	withToken    = fenced.Lock
)

func (l withoutToken) Lock(ctx context.Context) (context.Context, error) {
	return locktest.NoToken(l.LockAndGetToken(ctx))
}

func (l withoutToken) TryLock(ctx context.Context, wait, lease time.Duration) (context.Context, error) {
	return locktest.NoToken(l.TryLockAndGetToken(ctx, wait, lease))
}

// wantNeverTaken requires that ctx is of a failed acquire of this lock: nothing is held with it, and nothing is sent.
func wantNeverTaken(t testing.TB, l reentrant, ctx context.Context, spy *locktest.Spy) {
	t.Helper()
	before := spy.Commands()
	locktest.IsError(t, l.Unlock(ctx), rlock.ErrNotHeld)
	locktest.ErrorSays(t, l.Unlock(ctx), "has failed")
	locktest.IsError(t, l.Check(ctx), rlock.ErrNotHeld)
	_, err := l.Remaining(ctx)
	locktest.IsError(t, err, rlock.ErrNotHeld)
	count, err := l.HoldCount(ctx)
	locktest.NoError(t, err)
	locktest.Equal(t, "hold count", count, 0)
	held, err := l.IsHeld(ctx)
	locktest.NoError(t, err)
	locktest.Equal(t, "held", held, false)
	if l, ok := l.(withoutToken); ok {
		_, err := l.Token(ctx)
		locktest.IsError(t, err, rlock.ErrNotHeld)
	}
	locktest.Equal(t, "commands", spy.Commands(), before)
}

func TestInv7_UnlockAfterAFailedAcquire(t *testing.T) {
	kinds := map[string]func(c *rlock.Client) reentrant{
		"rlock":  func(c *rlock.Client) reentrant { return rlock.NewLock(c, "l") },
		"fenced": func(c *rlock.Client) reentrant { return withoutToken{fenced.NewLock(c, "l")} },
		"stable": func(c *rlock.Client) reentrant { return withoutToken{fenced.NewLock(c, "l", fenced.WithStableToken())} },
		"reads":  func(c *rlock.Client) reentrant { return rlock.NewRWLock(c, "l").Read() },
		"writes": func(c *rlock.Client) reentrant { return rlock.NewRWLock(c, "l").Write() },
	}
	type call func(l reentrant, ctx context.Context, spy *locktest.Spy) (context.Context, error)
	failures := map[string]call{
		"its context has ended": func(l reentrant, ctx context.Context, _ *locktest.Spy) (context.Context, error) {
			ctx, cancel := context.WithCancel(ctx)
			cancel()
			return l.Lock(ctx)
		},
		"a bad lease": func(l reentrant, ctx context.Context, _ *locktest.Spy) (context.Context, error) {
			return l.TryLock(ctx, 0, 1)
		},
		"the wait is over": func(l reentrant, ctx context.Context, _ *locktest.Spy) (context.Context, error) {
			return l.TryLock(rlock.NewHolder(ctx), time.Second, 0)
		},
		"Redis is slow": func(l reentrant, ctx context.Context, spy *locktest.Spy) (context.Context, error) {
			spy.Wrap(func(_ []string, next func() error) error {
				locktest.Sleep(400 * time.Millisecond)
				return next()
			})
			defer func() { spy.Wrap(nil) }()
			ctx, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
			defer cancel()
			return l.Lock(ctx)
		},
	}
	for name, kind := range kinds {
		for how, fail := range failures {
			if name == "reads" && how == "the wait is over" || (name == "reads" || name == "writes") && how == "Redis is slow" {
				continue // others read too, and a re-entry asks nobody
			}
			for depth := 1; depth <= 3; depth++ {
				t.Run(fmt.Sprintf("%s, %s, depth %d", name, how, depth), func(t *testing.T) {
					locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
						spy := locktest.SpyOn(rdb)
						c := newClient(t, rdb)
						l := kind(c)
						chain := []context.Context{t.Context()}
						for range depth {
							held, err := l.Lock(chain[len(chain)-1])
							locktest.NoError(t, err)
							chain = append(chain, held)
						}
						failed, err := fail(l, chain[depth], spy)
						if err == nil {
							t.Fatal("it has not failed")
						}
						locktest.Sleep(time.Second) // who has waited leaves the line behind its call
						wantNeverTaken(t, l, failed, spy)
						for _, held := range slices.Backward(chain[1:]) {
							locktest.NoError(t, l.Check(held))
							locktest.NoError(t, l.Unlock(held))
						}
						wantFree(t, m, 0, c)
					})
				})
			}
		}
	}
}

// A nested acquire with the context of a failed one re-enters the hold outside, and other locks of the chain are unlocked as before. A loop
// makes no chain.
func TestFailedAcquireInAChain(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		spy := locktest.SpyOn(rdb)
		c := newClient(t, rdb)
		a, b := fenced.NewLock(c, "a"), fenced.NewLock(c, "b")
		heldA := takeToken(t, a, t.Context(), 1)
		heldB := takeToken(t, b, heldA, 1)
		failed, _, err := a.TryLockAndGetToken(heldB, 0, 1)
		locktest.ErrorSays(t, err, "lease")
		wantNeverTaken(t, withoutToken{a}, failed, spy)
		locktest.NoError(t, b.Check(failed))

		again, _, err := a.LockAndGetToken(failed)
		locktest.NoError(t, err)
		locktest.NoError(t, a.Check(again))
		count, err := a.HoldCount(again)
		locktest.NoError(t, err)
		locktest.Equal(t, "hold count", count, 2)
		twice, _, err := b.TryLockAndGetToken(again, 0, 1)
		locktest.ErrorSays(t, err, "lease")
		wantNeverTaken(t, withoutToken{b}, twice, spy)
		locktest.NoError(t, a.Unlock(twice))
		wantNeverTaken(t, withoutToken{a}, failed, spy)

		loop := heldB
		for range 1000 {
			for _, l := range []*fenced.Lock{a, b} {
				if loop, _, err = l.TryLockAndGetToken(loop, 0, 1); err == nil {
					t.Fatal("no error")
				}
			}
		}
		first := loop
		loop, _, err = a.TryLockAndGetToken(loop, 0, 1)
		locktest.ErrorSays(t, err, "lease")
		locktest.Equal(t, "the context of the loop is the one before", loop == first, true)

		locktest.NoError(t, b.Unlock(failed)) // whose level is outside
		locktest.NoError(t, a.Unlock(heldA))
		wantFree(t, m, 0, c)
	})
}
