package fenced_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/rlock"
)

// What a Do derives from the context of a hold ends with that hold and with all that ends its context, carries its holder and its token, and re-enters it.
func TestP5_DoWithinAHold(t *testing.T) {
	type do = func(ctx context.Context, c *rlock.Client, fn func(ctx context.Context)) error
	kinds := map[string]do{
		"plain lock": func(ctx context.Context, c *rlock.Client, fn func(context.Context)) error {
			return rlock.NewLock(c, "inner").Do(ctx, func(ctx context.Context) error { fn(ctx); return nil })
		},
		"lock": func(ctx context.Context, c *rlock.Client, fn func(context.Context)) error {
			return fenced.NewLock(c, "inner").Do(ctx, func(ctx context.Context, _ int64) error { fn(ctx); return nil })
		},
		"read": func(ctx context.Context, c *rlock.Client, fn func(context.Context)) error {
			return fenced.NewRWLock(c, "inner").Read().Do(ctx, func(ctx context.Context, _ int64) error { fn(ctx); return nil })
		},
		"write": func(ctx context.Context, c *rlock.Client, fn func(context.Context)) error {
			return fenced.NewRWLock(c, "inner").Write().Do(ctx, func(ctx context.Context, _ int64) error { fn(ctx); return nil })
		},
		"permit": func(ctx context.Context, c *rlock.Client, fn func(context.Context)) error {
			return fenced.NewSemaphore(c, "inner", 2).Do(ctx, func(ctx context.Context, _ *fenced.Hold) error { fn(ctx); return nil })
		},
		"permit without a wait": func(ctx context.Context, c *rlock.Client, fn func(context.Context)) error {
			return fenced.NewSemaphore(c, "inner", 2).Do(ctx, func(ctx context.Context, _ *fenced.Hold) error { fn(ctx); return nil }, rlock.Wait(0))
		},
		"several locks": func(ctx context.Context, c *rlock.Client, fn func(context.Context)) error {
			locks := []*fenced.Lock{fenced.NewLock(c, "inner"), fenced.NewRWLock(c, "inner too").Write()}
			return fenced.DoAll(ctx, locks, func(ctx context.Context, _ []int64) error { fn(ctx); return nil })
		},
	}
	ends := map[string]struct {
		end   func(m *miniredis.Miniredis, outer *fenced.Lock, held context.Context, cancel context.CancelFunc)
		cause error
	}{
		"lost": {func(m *miniredis.Miniredis, outer *fenced.Lock, _ context.Context, _ context.CancelFunc) {
			m.Del("outer")
			locktest.Sleep(time.Minute)
		}, rlock.ErrLost},
		"unlocked": {func(_ *miniredis.Miniredis, outer *fenced.Lock, held context.Context, _ context.CancelFunc) {
			_ = outer.Unlock(held)
		}, rlock.ErrUnlocked},
		"cancelled": {func(_ *miniredis.Miniredis, _ *fenced.Lock, _ context.Context, cancel context.CancelFunc) { cancel() }, context.Canceled},
		"deadline": {func(*miniredis.Miniredis, *fenced.Lock, context.Context, context.CancelFunc) {
			locktest.Sleep(2 * time.Hour)
		}, context.DeadlineExceeded},
	}
	for kind, inner := range kinds {
		for how, over := range ends {
			t.Run(kind+"/"+how, func(t *testing.T) {
				locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
					c := newClient(t, rdb)
					outer, pages := fenced.NewLock(c, "outer"), fenced.NewRWLock(c, "pages")
					ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
					defer cancel()
					held, token, err := outer.LockAndGetToken(ctx)
					locktest.NoError(t, err)
					reads, _, err := pages.Read().LockAndGetToken(held)
					locktest.NoError(t, err)
					ran := false
					err = inner(reads, c, func(ctx context.Context) {
						ran = true
						_, has := ctx.Deadline()
						locktest.Equal(t, "it has the deadline", has, true)
						got, ok := fenced.TokenFrom(ctx, "outer")
						locktest.Equal(t, "it has the token of the outer hold", ok && got == token, true)
						again, _, err := outer.TryLockAndGetToken(ctx, 0, 0)
						locktest.NoError(t, err)
						locktest.NoError(t, outer.Unlock(again))
						_, _, err = pages.Write().TryLockAndGetToken(ctx, time.Second, 0)
						locktest.IsError(t, err, rlock.ErrUpgrade)

						locktest.NoError(t, ctx.Err())
						over.end(m, outer, held, cancel)
						synctest.Wait()
						if ctx.Err() == nil {
							t.Error("its context goes on")
						}
						select {
						case <-ctx.Done():
						default:
							t.Error("its Done is open")
						}
						locktest.IsError(t, context.Cause(ctx), over.cause)
					})
					locktest.Equal(t, "it ran", ran, true)
					if err != nil && !errors.Is(err, rlock.ErrLost) {
						t.Error(err)
					}
				})
			})
		}
	}
}
