package rlock_test

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/realtime"
	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/fencelock/fencelock/rlock"
)

// P3: a hook of the user's that fails after the command has run makes the acquire fail, whatever the error looks like:
// what was taken is released behind it.
func TestP3_AHookThatFailsAfterTheCommand(t *testing.T) {
	realtime.Test(t, "a wait of 1 s, and a patience of 500 ms")
	calls := map[string]func(context.Context, *rlock.Lock) (context.Context, error){
		"at once": func(ctx context.Context, l *rlock.Lock) (context.Context, error) { return l.TryLock(ctx, 0, 0) },
		"a wait": func(ctx context.Context, l *rlock.Lock) (context.Context, error) {
			return l.TryLock(ctx, time.Second, 0)
		},
		"a waiter": func(ctx context.Context, l *rlock.Lock) (context.Context, error) { return l.Lock(ctx) },
	}
	for name, why := range map[string]error{
		"redis.Nil": redis.Nil, "redis.ErrClosed": redis.ErrClosed,
		"an error reply": locktest.Reply("NOPE not today"), "a reply of a server that loads": locktest.Reply("LOADING not today"),
	} {
		for how, call := range calls {
			t.Run(name+"/"+how, func(t *testing.T) {
				rdb := redistest.New(t)
				spied := redistest.Client(t, rdb.Options().Addr)
				spy := locktest.SpyOn(spied)
				l := rlock.NewLock(newClient(t, spied, rlock.WithPatience(500*time.Millisecond)), "l")
				var taken atomic.Bool
				spy.Wrap(func(ops []string, next func() error) error {
					if err := next(); err != nil || !slices.Contains(ops, "acquire") {
						return err
					}
					taken.Store(rdb.Exists(t.Context(), "l").Val() == 1)
					return why
				})
				_, err := call(t.Context(), l)
				locktest.IsError(t, err, why)
				locktest.Equal(t, "taken", taken.Load(), true)
				redistest.Eventually(t, soon, func() bool { return rdb.Exists(t.Context(), "l").Val() == 0 }, "the lock is free")
			})
		}
	}
}
