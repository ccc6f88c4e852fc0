package rlock_test

import (
	"context"
	"io"
	"net"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/rlock"
)

// A waiter one of whose attempts got no answer, and that becomes a nested call after all: what the attempt takes
// when it arrives late is released (P3).
func TestP3_GhostOfAWaiterThatReenters(t *testing.T) {
	bhVirtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		c := bhClient(t, rdb, rlock.WithPollInterval(50*time.Millisecond))
		l := rlock.NewLock(c, "l")
		for _, name := range []string{"try", "wait"} {
			bhOK(t, rdb.ScriptLoad(t.Context(), bhText(name)).Err())
		}
		late := new(virtLate)
		rdb.AddHook(late)
		outer := bhLock(t, l, t.Context())
		inner := bhLock(t, l, outer)
		late.on.Store(true)
		got := bhGo(func() (context.Context, error) { return l.Lock(outer) }) // not nested: inner is the newest
		for late.args.Load() == nil {
			bhAsleep(time.Millisecond)
		}
		late.on.Store(false)
		bhOK(t, l.Unlock(inner)) // now it is
		g := <-got
		bhOK(t, g.err)
		bhOK(t, l.Unlock(g.ctx))
		bhOK(t, l.Unlock(outer))
		bhLocked(t, l, false)
		bhOK(t, rdb.Do(t.Context(), *late.args.Load()...).Err()) // the frozen connection goes on
		bhAsleep(15 * time.Second)
		if fields, _ := m.HKeys("l"); len(fields) > 0 {
			t.Errorf("P3: a ghost has the lock, TTL %v: %v", m.TTL("l"), fields)
		}
	})
}

// virtLate keeps an acquire to be sent later, and breaks its connection.
type virtLate struct {
	on   atomic.Bool
	args atomic.Pointer[[]any]
}

func (h *virtLate) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}
func (h *virtLate) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}
func (h *virtLate) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if h.on.Load() && bhScript(cmd.Args()) == "acquire" {
			args := slices.Clone(cmd.Args())
			h.args.CompareAndSwap(nil, &args)
			return io.EOF
		}
		return next(ctx, cmd)
	}
}
