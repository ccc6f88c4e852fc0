package rlock_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/internal/redistest"
	"github.com/fencelock/fencelock/rlock"
)

// Close: waiters and new calls get ErrClosed, held contexts end with it, and Unlock still releases (P12).
func TestBehaviourClose(t *testing.T) {
	redistest.CheckGoroutines(t)
	rdb := redistest.New(t)
	c := bhClient(t, rdb)
	l := rlock.NewLock(c, "l")
	outer := bhLock(t, l, t.Context())
	held := bhLock(t, l, outer)
	var waiting []<-chan bhGot
	for range 3 {
		waiting = append(waiting, bhGo(func() (context.Context, error) { return l.Lock(t.Context()) }))
	}
	bhSubscribed(t, rdb)
	bhOK(t, c.Close())
	bhOK(t, c.Close())
	for _, call := range waiting {
		got := bhWait(t, call, bhSoon, "a waiter returns")
		bhIs(t, got.err, rlock.ErrClosed)
		bhEqual(t, "context", got.ctx, t.Context())
	}
	for _, ctx := range []context.Context{held, outer} {
		bhWait(t, ctx.Done(), bhSoon, "the hold's context ends")
		bhIs(t, ctx.Err(), rlock.ErrClosed, context.Canceled)
		bhIs(t, context.Cause(ctx), rlock.ErrClosed)
		bhIs(t, l.Check(ctx), rlock.ErrClosed)
	}
	for _, call := range bhCalls {
		for _, ctx := range []context.Context{t.Context(), rlock.NewHolder(t.Context()), held, context.WithoutCancel(held)} {
			_, err := call.call(l, ctx)
			bhIs(t, err, rlock.ErrClosed)
		}
	}
	bhIs(t, l.Do(t.Context(), func(context.Context) error { t.Error("fn ran"); return nil }), rlock.ErrClosed)
	bhLocked(t, l, true)
	bhOK(t, l.Unlock(held))
	bhLocked(t, l, true)
	bhOK(t, l.Unlock(outer))
	bhLocked(t, l, false)
	bhIs(t, l.Unlock(outer), rlock.ErrNotHeld)
	bhEqual(t, "keys", len(rdb.Keys(t.Context(), "*").Val()), 0)
}

// Shutdown: contexts without a hold get ErrClosed, also those that wait; holders re-enter and take further locks, which
// are renewed; when they are done it closes.
func TestBehaviourShutdown(t *testing.T) {
	redistest.CheckGoroutines(t)
	rdb := redistest.New(t)
	c := bhClient(t, rdb)
	l, further := rlock.NewLock(c, "l"), rlock.NewLock(c, "further")
	held := bhLock(t, l, t.Context())
	others := rlock.NewLock(bhClient(t, rdb), "further")
	foreign := bhLock(t, others, t.Context())
	stranger := bhGo(func() (context.Context, error) { return l.Lock(t.Context()) })
	holder := bhGo(func() (context.Context, error) { return further.Lock(held) })
	bhSubscribed(t, rdb)
	down := make(chan error, 1)
	go func() { down <- c.Shutdown(t.Context()) }()

	bhIs(t, bhWait(t, stranger, bhSoon, "a waiter without a hold returns").err, rlock.ErrClosed)
	_, err := l.TryLock(rlock.NewHolder(held), time.Minute, 0)
	bhIs(t, err, rlock.ErrClosed)
	inner := bhLock(t, l, held)
	bhNone(t, holder, 20*time.Millisecond, "a waiter with a hold returned")
	bhOK(t, others.Unlock(foreign))
	got := bhWait(t, holder, bhSoon, "a waiter with a hold gets its lock")
	bhOK(t, got.err)
	bhOK(t, l.Unlock(inner))
	bhOK(t, held.Err())
	bhOK(t, further.Unlock(got.ctx))
	bhNone(t, down, 20*time.Millisecond, "Shutdown with a lock held")
	bhOK(t, l.Unlock(held))
	bhOK(t, bhWait(t, down, bhSoon, "Shutdown returns"))
	_, err = l.TryLock(t.Context(), 0, 0)
	bhIs(t, err, rlock.ErrClosed)
	bhEqual(t, "keys", len(rdb.Keys(t.Context(), "*").Val()), 0)
}

// Shutdown with a context that ends says how many locks were held, and closes.
func TestBehaviourShutdownInTime(t *testing.T) {
	rdb := redistest.New(t)
	c := bhClient(t, rdb)
	a, b := rlock.NewLock(c, "a"), rlock.NewLock(c, "b")
	inA, inB := bhLock(t, a, t.Context()), bhLock(t, b, t.Context())
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	err := c.Shutdown(ctx)
	bhIs(t, err, context.DeadlineExceeded)
	if !strings.Contains(err.Error(), "2 locks held") {
		t.Errorf("error %v does not say how many", err)
	}
	bhIs(t, inA.Err(), rlock.ErrClosed)
	bhOK(t, a.Unlock(inA))
	bhOK(t, b.Unlock(inB))
	bhOK(t, c.Shutdown(ctx))
}

// Inv9: after the last Unlock nothing is left but the token's counter, without a Close.
func TestBehaviourNothingIsLeft(t *testing.T) {
	rdb := redistest.New(t)
	c := bhClient(t, rdb)
	redistest.CheckGoroutines(t) // before the Close of the client, which would end them
	l := fenced.NewLock(c, "l")
	held, err := l.Lock(t.Context())
	bhOK(t, err)
	inner, err := l.LockLease(held, time.Hour)
	bhOK(t, err)
	var waiting []<-chan bhGot
	for range 5 {
		waiting = append(waiting, bhGo(func() (context.Context, error) {
			ctx, err := l.Lock(t.Context())
			if err == nil {
				err = l.Unlock(ctx)
			}
			return ctx, err
		}))
	}
	bhSubscribed(t, rdb)
	bhTaken(t, func(wait time.Duration) error { _, err := l.TryLock(t.Context(), wait, 0); return err })
	bhOK(t, l.Unlock(inner))
	bhOK(t, l.Unlock(held))
	for _, call := range waiting {
		bhOK(t, bhWait(t, call, bhSoon, "a waiter").err)
	}
	keys := rdb.Keys(t.Context(), "*").Val()
	if len(keys) != 1 || keys[0] != "redisson_lock_token:{l}" {
		t.Errorf("keys %q are left", keys)
	}
	redistest.Eventually(t, 5*time.Second, func() bool {
		return len(rdb.PubSubChannels(t.Context(), "*").Val()) == 0
	}, "no subscription is left")
}
