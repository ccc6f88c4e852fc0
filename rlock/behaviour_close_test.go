package rlock_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/fencelock/fencelock/rlock"
)

// Close: waiters and new calls get ErrClosed, held contexts end with it, and Unlock still releases (P12).
func TestBehaviourClose(t *testing.T) {
	redistest.CheckGoroutines(t)
	rdb := redistest.New(t)
	c := newClient(t, rdb)
	l := rlock.NewLock(c, "l")
	outer := take(t, l, t.Context())
	held := take(t, l, outer)
	var waiting []<-chan locktest.Result
	for range 3 {
		waiting = append(waiting, locktest.StartLock(func() (context.Context, error) { return l.Lock(t.Context()) }))
	}
	waitsForLock(t, rdb)
	locktest.NoError(t, c.Close())
	locktest.NoError(t, c.Close())
	for _, call := range waiting {
		got := redistest.Await(t, soon, call, "a waiter returns")
		locktest.IsError(t, got.Err, rlock.ErrClosed)
		locktest.Equal(t, "context", got.Ctx, t.Context())
	}
	for _, ctx := range []context.Context{held, outer} {
		redistest.Await(t, soon, ctx.Done(), "the hold's context ends")
		locktest.IsError(t, ctx.Err(), rlock.ErrClosed, context.Canceled)
		locktest.IsError(t, context.Cause(ctx), rlock.ErrClosed)
		locktest.IsError(t, l.Check(ctx), rlock.ErrClosed)
	}
	for _, call := range lockCalls {
		for _, ctx := range []context.Context{t.Context(), rlock.NewHolder(t.Context()), held, context.WithoutCancel(held)} {
			_, err := call.call(l, ctx)
			locktest.IsError(t, err, rlock.ErrClosed)
		}
	}
	locktest.IsError(t, l.Do(t.Context(), func(context.Context) error { t.Error("fn ran"); return nil }), rlock.ErrClosed)
	wantLocked(t, l, true)
	locktest.NoError(t, l.Unlock(held))
	wantLocked(t, l, true)
	locktest.NoError(t, l.Unlock(outer))
	wantLocked(t, l, false)
	locktest.IsError(t, l.Unlock(outer), rlock.ErrNotHeld)
	locktest.Equal(t, "keys", len(rdb.Keys(t.Context(), "*").Val()), 0)
}

// Shutdown: contexts without a hold get ErrClosed, also those that wait; holders re-enter and take further locks, which
// are renewed; when they are done it closes.
func TestBehaviourShutdown(t *testing.T) {
	redistest.CheckGoroutines(t)
	rdb := redistest.New(t)
	c := newClient(t, rdb)
	l, further := rlock.NewLock(c, "l"), rlock.NewLock(c, "further")
	held := take(t, l, t.Context())
	others := rlock.NewLock(newClient(t, rdb), "further")
	foreign := take(t, others, t.Context())
	stranger := locktest.StartLock(func() (context.Context, error) { return l.Lock(t.Context()) })
	holder := locktest.StartLock(func() (context.Context, error) { return further.Lock(held) })
	waitsForLock(t, rdb)
	down := make(chan error, 1)
	go func() { down <- c.Shutdown(t.Context()) }()

	locktest.IsError(t, redistest.Await(t, soon, stranger, "a waiter without a hold returns").Err, rlock.ErrClosed)
	_, err := l.TryLock(rlock.NewHolder(held), time.Minute, 0)
	locktest.IsError(t, err, rlock.ErrClosed)
	inner := take(t, l, held)
	locktest.NothingComes(t, holder, 20*time.Millisecond, "a waiter with a hold returned")
	locktest.NoError(t, others.Unlock(foreign))
	got := redistest.Await(t, soon, holder, "a waiter with a hold gets its lock")
	locktest.NoError(t, got.Err)
	locktest.NoError(t, l.Unlock(inner))
	locktest.NoError(t, held.Err())
	locktest.NoError(t, further.Unlock(got.Ctx))
	locktest.NothingComes(t, down, 20*time.Millisecond, "Shutdown with a lock held")
	locktest.NoError(t, l.Unlock(held))
	locktest.NoError(t, redistest.Await(t, soon, down, "Shutdown returns"))
	_, err = l.TryLock(t.Context(), 0, 0)
	locktest.IsError(t, err, rlock.ErrClosed)
	locktest.Equal(t, "keys", len(rdb.Keys(t.Context(), "*").Val()), 0)
}

// Shutdown with a context that ends says how many locks were held, and closes.
func TestBehaviourShutdownInTime(t *testing.T) {
	rdb := redistest.New(t)
	c := newClient(t, rdb)
	a, b := rlock.NewLock(c, "a"), rlock.NewLock(c, "b")
	inA, inB := take(t, a, t.Context()), take(t, b, t.Context())
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	err := c.Shutdown(ctx)
	locktest.IsError(t, err, context.DeadlineExceeded)
	if !strings.Contains(err.Error(), "2 locks held") {
		t.Errorf("error %v does not say how many", err)
	}
	locktest.IsError(t, inA.Err(), rlock.ErrClosed)
	locktest.NoError(t, a.Unlock(inA))
	locktest.NoError(t, b.Unlock(inB))
	locktest.NoError(t, c.Shutdown(ctx))
}

// Inv9: after the last Unlock nothing is left but the token's counter, without a Close.
func TestBehaviourNothingIsLeft(t *testing.T) {
	rdb := redistest.New(t)
	c := newClient(t, rdb)
	redistest.CheckGoroutines(t) // before the Close of the client, which would end them
	l := fenced.NewLock(c, "l")
	held, _, err := l.LockAndGetToken(t.Context())
	locktest.NoError(t, err)
	inner, _, err := l.LockLeaseAndGetToken(held, time.Hour)
	locktest.NoError(t, err)
	var waiting []<-chan locktest.Result
	for range 5 {
		waiting = append(waiting, locktest.StartLock(func() (context.Context, error) {
			ctx, _, err := l.LockAndGetToken(t.Context())
			if err == nil {
				err = l.Unlock(ctx)
			}
			return ctx, err
		}))
	}
	waitsForLock(t, rdb)
	wantTaken(t, func(wait time.Duration) error { _, _, err := l.TryLockAndGetToken(t.Context(), wait, 0); return err })
	locktest.NoError(t, l.Unlock(inner))
	locktest.NoError(t, l.Unlock(held))
	for _, call := range waiting {
		locktest.NoError(t, redistest.Await(t, soon, call, "a waiter").Err)
	}
	keys := rdb.Keys(t.Context(), "*").Val()
	if len(keys) != 1 || keys[0] != "redisson_lock_token:{l}" {
		t.Errorf("keys %q are left", keys)
	}
	redistest.Eventually(t, 5*time.Second, func() bool {
		return len(rdb.PubSubChannels(t.Context(), "*").Val()) == 0
	}, "no subscription is left")
}
