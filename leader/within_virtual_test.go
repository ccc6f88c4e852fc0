package leader_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/leader"
	"github.com/fencelock/fencelock/rlock"
)

// P5: lead's context ends with the hold that Run was called in and with all that ends its context, carries its holder and its token, and re-enters it.
func TestP5_RunWithinAHold(t *testing.T) {
	for how, over := range map[string]struct {
		end   func(m *miniredis.Miniredis, outer *fenced.Lock, held context.Context, cancel context.CancelFunc)
		cause error
	}{
		"lost": {func(m *miniredis.Miniredis, _ *fenced.Lock, _ context.Context, _ context.CancelFunc) {
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
	} {
		t.Run(how, func(t *testing.T) {
			locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
				c, err := rlock.New(rdb)
				locktest.NoError(t, err)
				t.Cleanup(func() { _ = c.Close() })
				outer := fenced.NewLock(c, "outer")
				e, err := leader.New(fenced.NewLock(c, "cron"))
				locktest.NoError(t, err)
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				held, token, err := outer.LockAndGetToken(ctx)
				locktest.NoError(t, err)
				ran := 0
				err = e.Run(held, func(ctx context.Context, term *leader.Term) error {
					ran++
					_, has := ctx.Deadline()
					locktest.Equal(t, "it has the deadline", has, true)
					got, ok := fenced.TokenFrom(ctx, "outer")
					locktest.Equal(t, "it has the token of the outer hold", ok && got == token, true)
					again, _, err := outer.TryLockAndGetToken(ctx, 0, 0)
					locktest.NoError(t, err)
					locktest.NoError(t, outer.Unlock(again))
					over.end(m, outer, held, cancel)
					synctest.Wait()
					if ctx.Err() == nil {
						t.Error("its context goes on")
					}
					locktest.IsError(t, context.Cause(ctx), over.cause)
					locktest.NoError(t, term.Err())
					return nil
				})
				locktest.IsError(t, err, over.cause)
				locktest.Equal(t, "it ran", ran, 1)
			})
		})
	}
}
