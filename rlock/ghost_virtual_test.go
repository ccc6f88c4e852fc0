package rlock_test

import (
	"context"
	"os"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/rlock"
)

// A waiter one of whose attempts got no answer, and that becomes a nested call after all: what the attempt takes
// when it arrives late is released (P3).
func TestP3_GhostOfAWaiterThatReenters(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		c := newClient(t, rdb, rlock.WithPollInterval(50*time.Millisecond))
		l := rlock.NewLock(c, "l")
		for _, name := range []string{"try", "wait"} {
			locktest.NoError(t, rdb.ScriptLoad(t.Context(), locktest.ScriptText(name)).Err())
		}
		late := new(lateAcquire)
		rdb.AddHook(locktest.Hook(late.keep))
		outer := take(t, l, t.Context())
		inner := take(t, l, outer)
		late.on.Store(true)
		got := locktest.StartLock(func() (context.Context, error) { return l.Lock(outer) }) // not nested: inner is the newest
		for late.args.Load() == nil {
			locktest.Sleep(time.Millisecond)
		}
		late.on.Store(false)
		locktest.NoError(t, l.Unlock(inner)) // now it is
		g := <-got
		locktest.NoError(t, g.Err)
		locktest.NoError(t, l.Unlock(g.Ctx))
		locktest.NoError(t, l.Unlock(outer))
		wantLocked(t, l, false)
		locktest.NoError(t, rdb.Do(t.Context(), *late.args.Load()...).Err()) // the frozen connection goes on
		locktest.Sleep(15 * time.Second)
		if fields, _ := m.HKeys("l"); len(fields) > 0 {
			t.Errorf("P3: a ghost has the lock, TTL %v: %v", m.TTL("l"), fields)
		}
	})
}

// lateAcquire keeps an acquire to be sent later, and gives it no answer.
type lateAcquire struct {
	on   atomic.Bool
	args atomic.Pointer[[]any]
}

func (l *lateAcquire) keep(_ context.Context, cmd redis.Cmder, send func() error) error {
	if l.on.Load() && slices.Equal(locktest.Ops(cmd.Args()), []string{"acquire"}) {
		args := slices.Clone(cmd.Args())
		l.args.CompareAndSwap(nil, &args)
		return os.ErrDeadlineExceeded // and not EOF: after that the client looks whether another server has taken over (P38)
	}
	return send()
}
