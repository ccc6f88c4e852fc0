package rlock

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/redistest"
)

// A retain that does not leave in time, as nothing is answered, is taken back, and not used again while the line has it.
func TestRetainTakenBack(t *testing.T) {
	redistest.Virtual(t, func(t *testing.T) {
		m, rdb := redistest.Pipe(t)
		c, err := New(rdb)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = c.Close() }()
		held, lv, err := NewLock(c, "l").tryAcquire(t.Context(), request{op: "Lock"})
		if err != nil {
			t.Fatal(err)
		}
		hangs := make(hanging)
		rdb.AddHook(hangs)
		others := make(chan error, 2)
		for _, name := range []string{"a", "b"} { // all flights are under way
			go func() {
				_, err := NewLock(c, name).Lock(t.Context())
				others <- err
			}()
			synctest.Wait()
		}
		next := &hold{client: c, queue: lv.hold.queue}
		next.trace = &next.own
		next.own.keys, next.own.field, next.own.lease = lv.hold.trace.keys, c.field(), time.Second
		if done, doubt := lv.hold.retain(next, request{}, 50*time.Millisecond); done || doubt {
			t.Errorf("it was not sent: done %v, doubt %v", done, doubt)
		}
		close(hangs)
		for range 2 {
			if err := <-others; err != nil {
				t.Error(err)
			}
		}
		synctest.Wait()
		if got := m.HGet("l", lv.hold.trace.field); got != "1" || next.own.open() {
			t.Errorf("the hold's count is %q, the next one has an attempt open: %v", got, next.own.open())
		}
		if err := NewLock(c, "l").Unlock(held); err != nil {
			t.Error(err)
		}
	})
}

// hanging keeps commands back until it is closed.
type hanging chan struct{}

func (h hanging) DialHook(next redis.DialHook) redis.DialHook { return next }
func (h hanging) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (h hanging) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		<-h
		return next(ctx, cmd)
	}
}
