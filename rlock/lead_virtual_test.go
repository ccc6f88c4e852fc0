package rlock_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/redistest"
	"github.com/fencelock/fencelock/rlock"
)

// holdUp keeps scripts back until it is closed.
type holdUp chan struct{}

func (h holdUp) DialHook(next redis.DialHook) redis.DialHook { return next }
func (h holdUp) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (h holdUp) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if cmd.Name() == "evalsha" {
			<-h
		}
		return next(ctx, cmd)
	}
}

// Inv8: a leader that heard that the lock is free, and gives up before its command has left, takes the news along: the
// next one looks for itself.
func TestVirtualLeaderGivesUpWithTheNews(t *testing.T) {
	bhVirtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		c := bhClient(t, rdb)
		l, other := rlock.NewLock(c, "l"), rlock.NewLock(bhClient(t, redistest.PipeClient(t, m)), "l")
		held := bhLock(t, other, t.Context())
		ctx, giveUp := context.WithCancel(t.Context())
		first := bhGo(func() (context.Context, error) { return l.Lock(ctx) })
		synctest.Wait()
		second := bhGo(func() (context.Context, error) { return l.Lock(t.Context()) })
		synctest.Wait()
		gate := make(holdUp)
		rdb.AddHook(gate)
		var busy []<-chan bhGot
		for _, name := range []string{"a", "b"} { // all batches are under way
			busy = append(busy, bhGo(func() (context.Context, error) { return rlock.NewLock(c, name).Lock(t.Context()) }))
			synctest.Wait()
		}
		bhOK(t, other.Unlock(held))
		synctest.Wait()
		giveUp()
		if got := <-first; got.err == nil {
			t.Fatal("it has the lock")
		}
		synctest.Wait()
		freed := time.Now()
		close(gate)
		got := <-second
		bhOK(t, got.err)
		if late := got.at.Sub(freed); late > 500*time.Millisecond {
			t.Errorf("the next waiter slept %v on a free lock", late)
		}
		bhOK(t, l.Unlock(got.ctx))
		for _, b := range busy {
			bhOK(t, (<-b).err)
		}
	})
}
