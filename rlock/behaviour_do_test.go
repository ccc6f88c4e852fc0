package rlock_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/fencelock/fencelock/rlock"
)

// doCalls are the ways to run a function with the lock.
var doCalls = map[string]func(l *rlock.Lock, ctx context.Context, fn func(context.Context) error) error{
	"Do": func(l *rlock.Lock, ctx context.Context, fn func(context.Context) error) error { return l.Do(ctx, fn) },
	"Do, Wait": func(l *rlock.Lock, ctx context.Context, fn func(context.Context) error) error {
		return l.Do(ctx, fn, rlock.Wait(time.Second), rlock.Lease(10*time.Second))
	},
}

func eachDo(t *testing.T, test func(t *testing.T, l *rlock.Lock, do func(context.Context, func(context.Context) error) error)) {
	for name, do := range doCalls {
		t.Run(name, func(t *testing.T) {
			_, l := newLock(t)
			test(t, l, func(ctx context.Context, fn func(context.Context) error) error { return do(l, ctx, fn) })
		})
	}
}

// fn runs with the lock, may re-enter it, and the lock is free after it; its error comes back as it is.
func TestBehaviourDo(t *testing.T) {
	eachDo(t, func(t *testing.T, l *rlock.Lock, do func(context.Context, func(context.Context) error) error) {
		var inside context.Context
		locktest.NoError(t, do(t.Context(), func(ctx context.Context) error {
			inside = ctx
			wantHolds(t, l, ctx, 1)
			return do(ctx, func(ctx context.Context) error {
				wantHolds(t, l, ctx, 2)
				return nil
			})
		}))
		locktest.IsError(t, inside.Err(), rlock.ErrUnlocked)
		wantLocked(t, l, false)
		failed := errors.New("fn failed")
		err := do(t.Context(), func(context.Context) error { return failed })
		locktest.IsError(t, err, failed)
		locktest.IsNotError(t, err, rlock.ErrLost)
		wantLocked(t, l, false)
	})
}

// P12: fn nil and the hold lost is ErrLost; fn failed and the hold lost is both.
func TestBehaviourDoLost(t *testing.T) {
	eachDo(t, func(t *testing.T, l *rlock.Lock, do func(context.Context, func(context.Context) error) error) {
		lose := func(ctx context.Context) {
			_, err := l.ForceUnlock(context.WithoutCancel(ctx))
			locktest.NoError(t, err)
		}
		locktest.IsError(t, do(t.Context(), func(ctx context.Context) error { lose(ctx); return nil }), rlock.ErrLost)
		failed := errors.New("fn failed")
		err := do(t.Context(), func(ctx context.Context) error { lose(ctx); return failed })
		locktest.IsError(t, err, failed, rlock.ErrLost)
		locktest.IsError(t, do(t.Context(), func(ctx context.Context) error { lose(ctx); return ctx.Err() }), rlock.ErrLost)
		wantLocked(t, l, false)
	})
}

// A panic unlocks and goes on; Goexit unlocks.
func TestBehaviourDoPanics(t *testing.T) {
	eachDo(t, func(t *testing.T, l *rlock.Lock, do func(context.Context, func(context.Context) error) error) {
		what := errors.New("what was thrown")
		func() {
			defer func() { locktest.Equal(t, "recovered", recover(), any(what)) }()
			err := do(t.Context(), func(context.Context) error { panic(what) })
			t.Errorf("Do returned %v", err)
		}()
		wantLocked(t, l, false)

		done := make(chan struct{})
		go func() {
			defer close(done)
			err := do(t.Context(), func(context.Context) error { runtime.Goexit(); return nil })
			t.Errorf("Do returned %v", err)
		}()
		redistest.Await(t, soon, done, "Goexit")
		wantLocked(t, l, false)
	})
}

// fn does not run where the lock was not acquired.
func TestBehaviourDoNotAcquired(t *testing.T) {
	_, l := newLock(t)
	held := take(t, l, t.Context())
	never := func(context.Context) error { t.Error("fn ran"); return nil }
	try := func(wait time.Duration) error {
		err := l.Do(t.Context(), never, rlock.Wait(wait))
		var e *rlock.Error
		if !errors.As(err, &e) || e.Op != "Do" || e.Lock != "l" {
			t.Errorf("error %v", err)
		}
		return err
	}
	locktest.IsError(t, try(0), rlock.ErrNotAcquired)
	wantTaken(t, try)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	locktest.IsError(t, l.Do(ctx, never), context.DeadlineExceeded)
	locktest.NoError(t, l.Unlock(held))
}

// Inv7: the lock is released although the context ended while fn ran.
func TestBehaviourDoContextEnds(t *testing.T) {
	eachDo(t, func(t *testing.T, l *rlock.Lock, do func(context.Context, func(context.Context) error) error) {
		ctx, cancel := context.WithCancel(t.Context())
		err := do(ctx, func(ctx context.Context) error {
			cancel()
			<-ctx.Done()
			return ctx.Err()
		})
		locktest.IsError(t, err, context.Canceled)
		locktest.IsNotError(t, err, rlock.ErrLost)
		wantLocked(t, l, false)
	})
}
