package fenced_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/realtime"
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
	locktest.NoError(t, l.Unlock(inner))
	locktest.NoError(t, other.Unlock(inOther))
	if _, ok := fenced.TokenFrom(inner, "other"); ok {
		t.Error("a token after the last Unlock")
	}
	current(t, l, outer, 2)
	locktest.NoError(t, l.Unlock(outer))
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
		locktest.IsError(t, err, want)
		locktest.Equal(t, "token", token, 0)
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
	locktest.NoError(t, l.Unlock(unlocked))
	check(unlocked, rlock.ErrUnlocked)
	check(context.WithoutCancel(unlocked), rlock.ErrUnlocked)

	lost := take(t, l, t.Context(), 2)
	_, err := l.ForceUnlock(t.Context())
	locktest.NoError(t, err)
	check(lost, rlock.ErrLost)
	check(context.WithoutCancel(lost), rlock.ErrLost)
	locktest.IsError(t, l.Unlock(lost), rlock.ErrLost)

	closed := take(t, l, t.Context(), 3)
	locktest.NoError(t, c.Close())
	check(closed, rlock.ErrClosed)
	locktest.NoError(t, l.Unlock(closed))
}

// Inv3: the token is gone with the lease, to the clock.
func TestTokenEndsWithTheLease(t *testing.T) {
	realtime.Test(t, "a lease of 100 ms")
	_, _, l := newLock(t)
	held, token, err := l.LockLeaseAndGetToken(t.Context(), 100*time.Millisecond)
	locktest.NoError(t, err)
	locktest.Equal(t, "token", token, 1)
	<-held.Done()
	locktest.IsError(t, held.Err(), rlock.ErrLost)
	if _, ok := fenced.TokenFrom(held, "l"); ok {
		t.Error("a token after the lease")
	}
	_, err = l.Token(held)
	locktest.IsError(t, err, rlock.ErrLost)
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
	locktest.NoError(t, l.Unlock(held))
	take(t, l, ctx, 2)
	current(t, l, ctx, 2)
	if _, ok := fenced.TokenFrom(rlock.NewHolder(ctx), "l"); ok {
		t.Error("a new holder of a new holder has its token")
	}
	locktest.NoError(t, l.Unlock(ctx))
	if _, ok := fenced.TokenFrom(ctx, "l"); ok {
		t.Error("a token after the Unlock")
	}
}

// A context of NewHolder has the token of each of its holder's locks by the lock's name, and none of a lock that was taken without one.
func TestNewHolderHasTokensByName(t *testing.T) {
	_, c, l := newLock(t)
	other, plain := fenced.NewLock(c, "other"), rlock.NewLock(c, "plain")
	locktest.NoError(t, other.Unlock(take(t, other, t.Context(), 1)))
	ctx := rlock.NewHolder(t.Context())
	_, err := plain.Lock(ctx)
	locktest.NoError(t, err)
	take(t, l, ctx, 1)
	if token, ok := fenced.TokenFrom(ctx, "other"); ok {
		t.Errorf("a lock that the holder has not got has the token %d", token)
	}
	take(t, other, ctx, 2)
	current(t, l, ctx, 1)
	current(t, other, ctx, 2)
	if token, ok := fenced.TokenFrom(ctx, "plain"); ok {
		t.Errorf("a lock without tokens has the token %d", token)
	}
	locktest.NoError(t, plain.Unlock(ctx))
	locktest.NoError(t, l.Unlock(ctx))
	locktest.NoError(t, other.Unlock(ctx))
}

// Token's doc: the token of a hold that was taken without one is ErrNotHeld, and the error says so.
func TestTokenOfAHoldWithoutOne(t *testing.T) {
	_, c, l := newLock(t)
	held, err := rlock.NewLock(c, "l").Lock(t.Context())
	locktest.NoError(t, err)
	token, err := l.Token(held)
	locktest.IsError(t, err, rlock.ErrNotHeld)
	locktest.ErrorSays(t, err, "taken without a token")
	locktest.Equal(t, "token", token, 0)
	locktest.NoError(t, l.Unlock(held))
}

// ContextWithToken is seen by TokenFrom, covers what is below it, and holds nothing.
func TestContextWithToken(t *testing.T) {
	_, _, l := newLock(t)
	far := fenced.ContextWithToken(t.Context(), "l", 41)
	token, ok := fenced.TokenFrom(far, "l")
	locktest.Equal(t, "token", token, 41)
	locktest.Equal(t, "is there", ok, true)
	if _, ok := fenced.TokenFrom(far, "m"); ok {
		t.Error("another lock has the token")
	}
	_, err := l.Token(far)
	locktest.IsError(t, err, rlock.ErrNotHeld)
	locktest.IsError(t, l.Unlock(far), rlock.ErrNotHeld)

	held := take(t, l, far, 1) // the hold's own token is the nearer one
	current(t, l, held, 1)
	near := fenced.ContextWithToken(held, "l", 42)
	token, _ = fenced.TokenFrom(near, "l")
	locktest.Equal(t, "token", token, 42)
	locktest.NoError(t, l.Unlock(near)) // the holder is still in it
}

// P9: the stable token is the first one for the whole hold, and no re-entry increments the counter; the next hold has the
// next.
func TestStableToken(t *testing.T) {
	rdb, c, l := newLock(t, fenced.WithStableToken())
	ctx := t.Context()
	outer := take(t, l, ctx, 1)
	inner := take(t, l, outer, 1)
	current(t, l, inner, 1)
	locktest.Equal(t, "counter", rdb.Get(ctx, tokenKey).Val(), "1")
	locktest.NoError(t, l.Do(inner, func(ctx context.Context, token int64) error {
		locktest.Equal(t, "token", token, 1)
		return nil
	}))
	plain := fenced.NewLock(c, "l") // the first acquire decides, whichever Lock value re-enters
	innermost := take(t, plain, inner, 1)
	locktest.Equal(t, "counter", rdb.Get(ctx, tokenKey).Val(), "1")
	locktest.NoError(t, plain.Unlock(innermost))
	locktest.NoError(t, l.Unlock(inner))
	locktest.NoError(t, l.Unlock(outer))

	outer = take(t, plain, ctx, 2) // and the other way round
	inner = take(t, l, outer, 3)
	current(t, plain, outer, 3)
	locktest.NoError(t, l.Unlock(inner))
	locktest.NoError(t, plain.Unlock(outer))

	locktest.NoError(t, l.Unlock(take(t, l, ctx, 4)))
}

// A fenced hold that is re-entered without a token keeps its token, and the other way round gets one.
func TestMixedReentry(t *testing.T) {
	rdb, c, l := newLock(t)
	unfenced := rlock.NewLock(c, "l")
	ctx := t.Context()
	outer := take(t, l, ctx, 1)
	inner, err := unfenced.Lock(outer)
	locktest.NoError(t, err)
	current(t, l, inner, 1)
	locktest.Equal(t, "counter", rdb.Get(ctx, tokenKey).Val(), "1")
	n, err := l.HoldCount(inner)
	locktest.NoError(t, err)
	locktest.Equal(t, "count", n, 2)
	locktest.NoError(t, l.Unlock(inner)) // either Lock value unlocks it
	locktest.NoError(t, unfenced.Unlock(outer))

	outer, err = unfenced.Lock(ctx)
	locktest.NoError(t, err)
	if _, ok := fenced.TokenFrom(outer, "l"); ok {
		t.Error("an unfenced hold has a token")
	}
	inner = take(t, l, outer, 2)
	current(t, l, inner, 2)
	current(t, l, outer, 2)
	locktest.NoError(t, l.Unlock(inner))
	locktest.NoError(t, unfenced.Unlock(outer))
}
