package fenced_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/rlock"
)

// P9: the holder's current token is its latest, by its contexts of any level, and what is derived from them.
func TestTokenFrom(t *testing.T) {
	_, c, l := newLock(t)
	other := fenced.NewLock(c, "other")
	outer := take(t, l, t.Context(), 1)
	inOther := take(t, other, outer, 1)
	inner := take(t, l, inOther, 2)
	type key struct{}
	derived, cancel := context.WithTimeout(context.WithValue(inner, key{}, 1), time.Hour)
	defer cancel()
	for _, ctx := range []context.Context{outer, inOther, inner, derived, context.WithoutCancel(inner)} {
		current(t, l, ctx, 2)
	}
	current(t, other, inner, 1)
	if _, ok := fenced.TokenFrom(outer, "other"); ok {
		t.Error("the outer context has a token that was taken with another one")
	}
	for _, name := range []string{"", "none"} {
		if token, ok := fenced.TokenFrom(inner, name); ok || token != 0 {
			t.Errorf("lock %q has token %d", name, token)
		}
	}
	if _, ok := fenced.TokenFrom(t.Context(), "l"); ok {
		t.Error("a context without a holder has a token")
	}
	noError(t, l.Unlock(inner))
	noError(t, other.Unlock(inOther))
	if _, ok := fenced.TokenFrom(inner, "other"); ok {
		t.Error("a token after the last Unlock")
	}
	current(t, l, outer, 2)
	noError(t, l.Unlock(outer))
	for _, ctx := range []context.Context{outer, inner, derived, context.WithoutCancel(inner)} {
		if _, ok := fenced.TokenFrom(ctx, "l"); ok {
			t.Error("a token after the last Unlock")
		}
	}
}

// Token's errors are those of Check; TokenFrom is false with each of them.
func TestTokenErrors(t *testing.T) {
	_, c, l := newLock(t)
	check := func(ctx context.Context, want error) {
		t.Helper()
		token, err := l.Token(ctx)
		isError(t, err, want)
		equal(t, "token", token, 0)
		var e *rlock.Error
		if !errors.As(err, &e) || e.Op != "Token" || e.Lock != "l" {
			t.Errorf("error %v", err)
		}
		if _, ok := fenced.TokenFrom(ctx, "l"); ok {
			t.Errorf("TokenFrom gives a token where Token says %v", err)
		}
	}
	check(t.Context(), rlock.ErrNotHeld)
	check(rlock.NewHolder(t.Context()), rlock.ErrNotHeld)
	unlocked := take(t, l, t.Context(), 1)
	noError(t, l.Unlock(unlocked))
	check(unlocked, rlock.ErrUnlocked)
	check(context.WithoutCancel(unlocked), rlock.ErrUnlocked)

	lost := take(t, l, t.Context(), 2)
	_, err := l.ForceUnlock(t.Context())
	noError(t, err)
	check(lost, rlock.ErrLost)
	check(context.WithoutCancel(lost), rlock.ErrLost)
	isError(t, l.Unlock(lost), rlock.ErrLost)

	closed := take(t, l, t.Context(), 3)
	noError(t, c.Close())
	check(closed, rlock.ErrClosed)
	noError(t, l.Unlock(closed))
}

// Inv3: the token is gone with the lease, to the clock.
func TestTokenEndsWithTheLease(t *testing.T) {
	_, _, l := newLock(t)
	held, token, err := l.LockLeaseAndGetToken(t.Context(), 100*time.Millisecond)
	noError(t, err)
	equal(t, "token", token, 1)
	<-held.Done()
	isError(t, held.Err(), rlock.ErrLost)
	if _, ok := fenced.TokenFrom(held, "l"); ok {
		t.Error("a token after the lease")
	}
	_, err = l.Token(held)
	isError(t, err, rlock.ErrLost)
}

// NewHolder masks the tokens of the holder and those given by hand; its own are seen, also where the context that the
// acquire returned was thrown away.
func TestNewHolderMasksTokens(t *testing.T) {
	_, _, l := newLock(t)
	held := take(t, l, fenced.ContextWithToken(t.Context(), "far", 7), 1)
	ctx := rlock.NewHolder(held)
	for _, name := range []string{"l", "far"} {
		if token, ok := fenced.TokenFrom(ctx, name); ok {
			t.Errorf("a new holder has the token %d of %s", token, name)
		}
	}
	noError(t, l.Unlock(held))
	take(t, l, ctx, 2)
	current(t, l, ctx, 2)
	if _, ok := fenced.TokenFrom(rlock.NewHolder(ctx), "l"); ok {
		t.Error("a new holder of a new holder has its token")
	}
	noError(t, l.Unlock(ctx))
	if _, ok := fenced.TokenFrom(ctx, "l"); ok {
		t.Error("a token after the Unlock")
	}
}

// ContextWithToken is seen by TokenFrom, covers what is below it, and holds nothing.
func TestContextWithToken(t *testing.T) {
	_, _, l := newLock(t)
	far := fenced.ContextWithToken(t.Context(), "l", 41)
	token, ok := fenced.TokenFrom(far, "l")
	equal(t, "token", token, 41)
	equal(t, "is there", ok, true)
	if _, ok := fenced.TokenFrom(far, "m"); ok {
		t.Error("another lock has the token")
	}
	_, err := l.Token(far)
	isError(t, err, rlock.ErrNotHeld)
	isError(t, l.Unlock(far), rlock.ErrNotHeld)

	held := take(t, l, far, 1) // the hold's own token is the nearer one
	current(t, l, held, 1)
	near := fenced.ContextWithToken(held, "l", 42)
	token, _ = fenced.TokenFrom(near, "l")
	equal(t, "token", token, 42)
	noError(t, l.Unlock(near)) // the holder is still in it
}

// P9: the stable token is the first one for the whole hold, and no re-entry increments the counter; the next hold has the
// next.
func TestStableToken(t *testing.T) {
	rdb, c, l := newLock(t, fenced.WithStableToken())
	ctx := t.Context()
	outer := take(t, l, ctx, 1)
	inner := take(t, l, outer, 1)
	current(t, l, inner, 1)
	equal(t, "counter", rdb.Get(ctx, tokenKey).Val(), "1")
	noError(t, l.Do(inner, func(ctx context.Context, token int64) error {
		equal(t, "token", token, 1)
		return nil
	}))
	plain := fenced.NewLock(c, "l") // the first acquire decides, whichever Lock value re-enters
	innermost := take(t, plain, inner, 1)
	equal(t, "counter", rdb.Get(ctx, tokenKey).Val(), "1")
	noError(t, plain.Unlock(innermost))
	noError(t, l.Unlock(inner))
	noError(t, l.Unlock(outer))

	outer = take(t, plain, ctx, 2) // and the other way round
	inner = take(t, l, outer, 3)
	current(t, plain, outer, 3)
	noError(t, l.Unlock(inner))
	noError(t, plain.Unlock(outer))

	noError(t, l.Unlock(take(t, l, ctx, 4)))
}

// A fenced hold that is re-entered without a token keeps its token, and the other way round gets one.
func TestMixedReentry(t *testing.T) {
	rdb, c, l := newLock(t)
	unfenced := rlock.NewLock(c, "l")
	ctx := t.Context()
	outer := take(t, l, ctx, 1)
	inner, err := unfenced.Lock(outer)
	noError(t, err)
	current(t, l, inner, 1)
	equal(t, "counter", rdb.Get(ctx, tokenKey).Val(), "1")
	n, err := l.HoldCount(inner)
	noError(t, err)
	equal(t, "count", n, 2)
	noError(t, l.Unlock(inner)) // either Lock value unlocks it
	noError(t, unfenced.Unlock(outer))

	outer, err = unfenced.Lock(ctx)
	noError(t, err)
	if _, ok := fenced.TokenFrom(outer, "l"); ok {
		t.Error("an unfenced hold has a token")
	}
	inner = take(t, l, outer, 2)
	current(t, l, inner, 2)
	current(t, l, outer, 2)
	noError(t, l.Unlock(inner))
	noError(t, unfenced.Unlock(outer))
}
