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

// Inv9, P12: a hold that is lost before its call has left the queue takes nothing with it that others use: the client goes on to know the lock
// while it holds it, and Shutdown waits for that hold.
func TestP12_LostBeforeItsCallHasLeftTheQueue(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		spy := locktest.SpyOn(rdb)
		c := newClient(t, rdb)
		l := rlock.NewLock(c, "l")
		theirs := rlock.NewLock(newClient(t, redistest.PipeClient(t, m)), "l")
		held := take(t, theirs, t.Context())
		waits := locktest.StartLock(func() (context.Context, error) { return l.LockLease(t.Context(), time.Hour) })
		synctest.Wait()
		forced := forceUnheard(t, spy, l, "acquire", true)
		locktest.NoError(t, theirs.Unlock(held))
		r := <-waits
		locktest.NoError(t, r.Err)
		locktest.NoError(t, <-forced)
		locktest.IsError(t, l.Unlock(r.Ctx), rlock.ErrLost)
		spy.Wrap(nil)

		mine := take(t, l, t.Context())
		locktest.Sleep(5 * time.Second) // what was kept for the lost one is gone
		locktest.Equal(t, "locks that the client knows", c.LockStates(), 1)
		shut := locktest.Start(func() error { return c.Shutdown(t.Context()) })
		locktest.Sleep(10 * time.Second)
		locktest.NoError(t, mine.Err())
		locktest.NoError(t, l.Unlock(mine))
		locktest.NoError(t, <-shut)
	})
}
