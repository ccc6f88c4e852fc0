package rlocktest_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/rlock"
	"github.com/fencelock/fencelock/rlocktest"
)

// A hold that has lost the context which it was taken with fails the test: unlocked, lost by its lease, or with a lease of its own.
func TestAContextThatEndsBeforeItsHoldFailsTheTest(t *testing.T) {
	tests := map[string]func(t testing.TB, s *rlocktest.Server){
		"Lock": func(t testing.TB, s *rlocktest.Server) {
			lock := rlock.NewLock(s.Client(), "x")
			ctx, cancel := context.WithCancel(context.Background())
			held, err := lock.Lock(ctx)
			locktest.NoError(t, err)
			cancel()
			locktest.NoError(t, lock.Unlock(held))
		},
		"a lease of its own": func(t testing.TB, s *rlocktest.Server) {
			lock := fenced.NewLock(s.Client(), "x")
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			held, _, err := lock.TryLockAndGetToken(ctx, 0, time.Minute)
			locktest.NoError(t, err)
			time.Sleep(2 * time.Second)
			locktest.NoError(t, lock.Unlock(held))
		},
		"not renewed": func(t testing.TB, s *rlocktest.Server) {
			lock := fenced.NewLock(s.Client(), "x")
			ctx, cancel := context.WithCancel(context.Background())
			held, _, err := lock.LockAndGetToken(ctx)
			locktest.NoError(t, err)
			cancel()
			time.Sleep(time.Minute)
			locktest.IsError(t, lock.Unlock(held), rlock.ErrLost)
		},
		"under another lock": func(t testing.TB, s *rlocktest.Server) {
			c := s.Client()
			lock := rlock.NewLock(c, "x")
			locktest.NoError(t, rlock.NewLock(c, "outer").Do(context.Background(), func(outer context.Context) error {
				ctx, cancel := context.WithCancel(outer)
				held, err := lock.Lock(ctx)
				locktest.NoError(t, err)
				cancel()
				time.Sleep(time.Second) // a context under another hold tells of its end by a goroutine
				return lock.Unlock(held)
			}))
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := told(t, func(t testing.TB) { test(t, rlocktest.New(t)) })
			for _, part := range []string{"a context has ended before the hold", `"x", which was taken at early_test.go:`, "Acquire", "AllowEndedContexts"} {
				if strings.Count(got, part) != 1 {
					t.Errorf("the test was told %q, want %q once", got, part)
				}
			}
			locktest.Equal(t, "told, where it is allowed", told(t, func(t testing.TB) { test(t, rlocktest.New(t, rlocktest.AllowEndedContexts())) }), "")
		})
	}
}

func TestContextsThatMayEnd(t *testing.T) {
	for name, test := range map[string]func(t testing.TB, c *rlock.Client, s *rlocktest.Server){
		"Acquire": func(t testing.TB, c *rlock.Client, _ *rlocktest.Server) {
			for _, opts := range [][]rlock.AcquireOption{nil, {rlock.Reenter()}} {
				ctx, cancel := context.WithCancel(context.Background())
				hold, err := rlock.NewLock(c, "x").Acquire(ctx, opts...)
				locktest.NoError(t, err)
				cancel()
				locktest.NoError(t, hold.Unlock(ctx))
			}
		},
		"Do, and a level inside": func(t testing.TB, c *rlock.Client, _ *rlocktest.Server) {
			ctx, cancel := context.WithCancel(context.Background())
			lock := fenced.NewLock(c, "x")
			locktest.NoError(t, lock.Do(ctx, func(ctx context.Context, _ int64) error {
				held, _, err := lock.LockAndGetToken(ctx)
				locktest.NoError(t, err)
				cancel()
				return lock.Unlock(held)
			}))
		},
		"after the Unlock": func(t testing.TB, c *rlock.Client, _ *rlocktest.Server) {
			ctx, cancel := context.WithCancel(context.Background())
			lock := rlock.NewLock(c, "x")
			held, err := lock.Lock(ctx)
			locktest.NoError(t, err)
			locktest.NoError(t, lock.Unlock(held))
			cancel()
		},
		"with the loss of the lock around it": func(t testing.TB, c *rlock.Client, s *rlocktest.Server) {
			outer, inner := rlock.NewLock(c, "outer"), rlock.NewLock(c, "inner")
			held, err := outer.Lock(context.Background())
			locktest.NoError(t, err)
			both, err := inner.Lock(held)
			locktest.NoError(t, err)
			s.Expire("outer")
			locktest.NoError(t, inner.Unlock(both))
			locktest.IsError(t, outer.Unlock(held), rlock.ErrLost)
		},
		"after the loss of the lock": func(t testing.TB, c *rlock.Client, s *rlocktest.Server) {
			ctx, cancel := context.WithCancel(context.Background())
			lock := rlock.NewLock(c, "x")
			held, err := lock.Lock(ctx)
			locktest.NoError(t, err)
			s.Expire("x")
			cancel()
			locktest.IsError(t, lock.Unlock(held), rlock.ErrLost)
		},
	} {
		t.Run(name, func(t *testing.T) {
			locktest.Equal(t, "told", told(t, func(t testing.TB) {
				s := rlocktest.New(t)
				test(t, s.Client(), s)
			}), "")
		})
	}
}

// The context of the test ends before its cleanups, which may unlock.
func TestTheContextOfATestMayEnd(t *testing.T) {
	both(t, func(t *testing.T) {
		lock := rlock.NewLock(rlocktest.New(t).Client(), "x")
		held, err := lock.Lock(t.Context())
		locktest.NoError(t, err)
		t.Cleanup(func() {
			if t.Context().Err() == nil {
				t.Error("the test's context is alive")
			}
			locktest.NoError(t, lock.Unlock(held))
		})
	})
}
