package rlock_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/fencelock/fencelock/rlock"
)

// Inv8: a leader that heard that the lock is free, and gives up before its command has left, takes the news along: the
// next one looks for itself.
func TestLeaderGivesUpWithTheNews(t *testing.T) {
	for _, age := range []time.Duration{0, 150 * time.Millisecond} { // of the command
		t.Run(age.String(), func(t *testing.T) {
			locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
				c := newClient(t, rdb)
				l, other := rlock.NewLock(c, "l"), rlock.NewLock(newClient(t, redistest.PipeClient(t, m)), "l")
				held := take(t, other, t.Context())
				ctx, giveUp := context.WithCancel(t.Context())
				first := locktest.StartLock(func() (context.Context, error) { return l.Lock(ctx) })
				synctest.Wait()
				second := locktest.StartLock(func() (context.Context, error) { return l.Lock(t.Context()) })
				synctest.Wait()
				gate := make(chan struct{}) // scripts are kept back until it is closed
				rdb.AddHook(locktest.Hook(func(_ context.Context, cmd redis.Cmder, send func() error) error {
					if cmd.Name() == "evalsha" {
						<-gate
					}
					return send()
				}))
				var busy []<-chan locktest.Result
				for _, name := range []string{"a", "b"} { // all batches are under way
					busy = append(busy, locktest.StartLock(func() (context.Context, error) { return rlock.NewLock(c, name).Lock(t.Context()) }))
					synctest.Wait()
				}
				locktest.NoError(t, other.Unlock(held))
				locktest.Sleep(age)
				giveUp()
				if got := <-first; got.Err == nil {
					t.Fatal("it has the lock")
				}
				synctest.Wait()
				freed := time.Now()
				close(gate)
				got := <-second
				locktest.NoError(t, got.Err)
				locktest.Equal(t, "the next waiter sleeps on a free lock for", got.At.Sub(freed), 0)
				locktest.NoError(t, l.Unlock(got.Ctx))
				for _, b := range busy {
					locktest.NoError(t, (<-b).Err)
				}
			})
		})
	}
}
