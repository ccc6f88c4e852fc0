package fenced_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/rlock"
)

// Inv12: every method of a lock that NewLock did not make, or of which the client was not made by New, says so. Their
// names are empty, and no panic.
func TestLocksThatNobodyMade(t *testing.T) {
	ctx := t.Context()
	never := func(context.Context) error { t.Error("fn ran"); return nil }
	neverWithToken := func(context.Context, int64) error { t.Error("fn ran"); return nil }
	for name, l := range map[string]*rlock.Lock{
		"nil": nil, "zero": {}, "no client": rlock.NewLock(nil, ""), "zero client": rlock.NewLock(new(rlock.Client), ""),
	} {
		calls := methods(ctx, l)
		calls["Do"] = func() (context.Context, error) { return ctx, l.Do(ctx, never) }
		calls["Lock"] = func() (context.Context, error) { return l.Lock(ctx) }
		calls["LockLease"] = func() (context.Context, error) { return l.LockLease(ctx, time.Second) }
		calls["TryLock"] = func() (context.Context, error) { return l.TryLock(ctx, time.Second, 0) }
		misused(t, "rlock, "+name, l.Name(), calls)
	}
	for name, l := range map[string]*fenced.Lock{
		"nil": nil, "zero": {}, "no client": fenced.NewLock(nil, ""), "zero client": fenced.NewLock(new(rlock.Client), ""),
	} {
		calls := methods(ctx, l)
		calls["LockAndGetToken"] = func() (context.Context, error) { c, _, err := l.LockAndGetToken(ctx); return c, err }
		calls["LockLeaseAndGetToken"] = func() (context.Context, error) { c, _, err := l.LockLeaseAndGetToken(ctx, time.Second); return c, err }
		calls["TryLockAndGetToken"] = func() (context.Context, error) { c, _, err := l.TryLockAndGetToken(ctx, 0, 0); return c, err }
		calls["Do"] = func() (context.Context, error) { return ctx, l.Do(ctx, neverWithToken) }
		calls["Token"] = func() (context.Context, error) { _, err := l.Token(ctx); return ctx, err }
		misused(t, "fenced, "+name, l.Name(), calls)
	}
}

// Inv12: a client that is nil or a zero value, as that of a New whose error nobody has looked at, says so.
func TestClientsThatNobodyMade(t *testing.T) {
	for _, c := range []*rlock.Client{nil, new(rlock.Client)} {
		locktest.ErrorSays(t, c.Close(), "make it with New")
		locktest.ErrorSays(t, c.Shutdown(t.Context()), "make it with New")
		locktest.Equal(t, "id", c.ID(), "")
	}
}

// methods are those that locks with and without tokens have in common.
func methods(ctx context.Context, l interface {
	Unlock(context.Context) error
	Check(context.Context) error
	ForceUnlock(context.Context) (bool, error)
	IsLocked(context.Context) (bool, error)
	IsHeld(context.Context) (bool, error)
	HoldCount(context.Context) (int, error)
	TTL(context.Context) (time.Duration, error)
}) map[string]func() (context.Context, error) {
	return map[string]func() (context.Context, error){
		"Unlock":      func() (context.Context, error) { return ctx, l.Unlock(ctx) },
		"Check":       func() (context.Context, error) { return ctx, l.Check(ctx) },
		"ForceUnlock": func() (context.Context, error) { _, err := l.ForceUnlock(ctx); return ctx, err },
		"IsLocked":    func() (context.Context, error) { _, err := l.IsLocked(ctx); return ctx, err },
		"IsHeld":      func() (context.Context, error) { _, err := l.IsHeld(ctx); return ctx, err },
		"HoldCount":   func() (context.Context, error) { _, err := l.HoldCount(ctx); return ctx, err },
		"TTL":         func() (context.Context, error) { _, err := l.TTL(ctx); return ctx, err },
	}
}

func misused(t *testing.T, what, name string, calls map[string]func() (context.Context, error)) {
	t.Helper()
	locktest.Equal(t, what+": name", name, "")
	for op, call := range calls {
		got, err := call()
		var e *rlock.Error
		if !errors.As(err, &e) || e.Op != op || !strings.Contains(err.Error(), "make") {
			t.Errorf("%s: %s: error %v, want an *Error that says what to make", what, op, err)
		}
		if got != t.Context() {
			t.Errorf("%s: %s: another context came back", what, op)
		}
	}
}

// Inv12: a hold and a permit that are nil or zero values hold nothing, and what asks them for more says what to do. That is what a program has which has not
// looked at the error of Acquire.
func TestHoldsThatNobodyMade(t *testing.T) {
	type common interface {
		Context() context.Context
		Done() <-chan struct{}
		Err() error
		Remaining() time.Duration
		Extend(context.Context, time.Duration) error
		Waited() <-chan struct{}
		Unlock(context.Context) error
	}
	for name, h := range map[string]common{
		"rlock, nil": (*rlock.Hold)(nil), "rlock, zero": new(rlock.Hold), "nil": (*fenced.Hold)(nil), "zero": new(fenced.Hold),
	} {
		t.Run(name, func(t *testing.T) {
			ctx := h.Context()
			derived, cancel := context.WithCancel(ctx)
			defer cancel()
			for op, err := range map[string]error{
				"Err": h.Err(), "the context": ctx.Err(), "its cause": context.Cause(ctx), "a derived context": context.Cause(derived),
				"Extend": h.Extend(t.Context(), time.Second), "Unlock": h.Unlock(t.Context()),
			} {
				if err == nil || !strings.Contains(err.Error(), "the hold is nil or a zero value: use") {
					t.Errorf("%s: error %v, want one that says what to use", op, err)
				}
				locktest.IsError(t, err, rlock.ErrNotHeld)
				var e *rlock.Error
				if called := op == "Extend" || op == "Unlock"; errors.As(err, &e) != called || called && e.Op != op {
					t.Errorf("%s: error %#v", op, err)
				}
			}
			locktest.IsError(t, ctx.Err(), context.Canceled)
			for what, done := range map[string]<-chan struct{}{"Done": h.Done(), "the context": ctx.Done(), "a derived context": derived.Done()} {
				select {
				case <-done:
				default:
					t.Errorf("%s is open", what)
				}
			}
			select {
			case <-h.Waited():
				t.Error("somebody waits")
			default:
			}
			locktest.Equal(t, "remaining", h.Remaining(), 0)
			if f, fences := h.(interface{ Token() int64 }); fences {
				locktest.Equal(t, "token", f.Token(), 0)
			}
			if p, is := h.(*fenced.Hold); is {
				locktest.Equal(t, "slot", p.Slot(), -1)
				locktest.Equal(t, "name", p.Name(), "")
			}
		})
	}
}

// Inv12: a wait that is a bare number, as Java's methods take it, is refused, and so is the most negative one.
func TestWaitsThatNobodyMeans(t *testing.T) {
	rdb, c, l := newLock(t)
	plain := rlock.NewLock(c, "l")
	locktest.NoError(t, rdb.Close()) // whoever asks says so
	ctx := t.Context()
	for _, w := range []struct {
		wait time.Duration
		says string
	}{
		{3, "wait 3ns: use 1ms or more, or 0 to try once; is 3*time.Second meant?"},
		{3000, "is 3000*time.Millisecond meant?"},
		{time.Millisecond - 1, "use 1ms or more"},
		{math.MinInt64, "is negative"},
	} {
		for op, call := range map[string]func() error{
			"TryLock":            func() error { _, err := plain.TryLock(ctx, w.wait, 0); return err },
			"Do, Wait":           func() error { return plain.Do(ctx, func(context.Context) error { return nil }, rlock.Wait(w.wait)) },
			"TryLockAndGetToken": func() error { _, _, err := l.TryLockAndGetToken(ctx, w.wait, 0); return err },
			"fenced TryLock":     func() error { _, _, err := l.TryLockAndGetToken(ctx, w.wait, 0); return err },
			"fenced Do, Wait":    func() error { return l.Do(ctx, func(context.Context, int64) error { return nil }, rlock.Wait(w.wait)) },
		} {
			if err := call(); err == nil || !strings.Contains(err.Error(), w.says) {
				t.Errorf("%s with wait %v: error %v, want one that says %q", op, w.wait, err, w.says)
			}
		}
	}
	if _, _, err := l.LockLeaseAndGetToken(ctx, 10); err == nil || !strings.Contains(err.Error(), "is 10*time.Second meant?") {
		t.Errorf("lease 10: %v", err)
	}
}
