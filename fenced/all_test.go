package fenced_test

import (
	"context"
	"testing"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/fencelock/fencelock/rlock"
)

// DoAll gives the tokens in the caller's order, the same one for a lock that is given twice.
func TestTokensOfDoAll(t *testing.T) {
	client := newClient(t, redistest.New(t))
	a, b := fenced.NewLock(client, "a"), fenced.NewLock(client, "b")
	for range 3 {
		locktest.NoError(t, a.Do(t.Context(), func(context.Context, int64) error { return nil })) // a is three tokens ahead
	}
	locktest.NoError(t, fenced.DoAll(t.Context(), []*fenced.Lock{b, a, b}, func(ctx context.Context, tokens []int64) error {
		locktest.DeepEqual(t, "tokens", tokens, []int64{1, 4, 1})
		return nil
	}))
	err := fenced.DoAll(t.Context(), []*fenced.Lock{a, fenced.NewLock(client, "a", fenced.WithStableToken())}, nil, rlock.Wait(0))
	locktest.ErrorSays(t, err, "rlock: DoAll: fn is nil")
	err = fenced.DoAll(t.Context(), []*fenced.Lock{a, fenced.NewLock(client, "a", fenced.WithStableToken())},
		func(context.Context, []int64) error { return nil }, rlock.Wait(0))
	locktest.ErrorSays(t, err, `"a"`, "options")
	held, _, err := b.LockAndGetToken(t.Context())
	locktest.NoError(t, err)
	locktest.IsError(t, fenced.DoAll(t.Context(), []*fenced.Lock{a, b}, func(context.Context, []int64) error { return nil }, rlock.Wait(0)), rlock.ErrNotAcquired)
	locktest.NoError(t, b.Unlock(held))
}
