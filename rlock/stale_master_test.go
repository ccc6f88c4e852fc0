package rlock_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fencelock/fencelock/internal/locktest"
	"github.com/fencelock/fencelock/internal/redistest"
	"github.com/fencelock/fencelock/rlock"
)

// A failover by command: the old master goes on taking and releasing locks until it is told, and the new one never hears of that.
// No lock stays taken by a hold that its client has released, neither for that client nor, while that does anything, for others (P38).
func TestP38_SentinelFailoverOfABusyMaster(t *testing.T) {
	t.Parallel()
	const locks, lease = 20, time.Minute
	s := redistest.Watched(t, 2)
	one, two := newClient(t, s.Client(), rlock.WithLease(lease)), newClient(t, s.Client(), rlock.WithLease(lease))
	all, end := context.WithCancel(t.Context())
	busy, endBusy := context.WithCancel(t.Context())
	var loops sync.WaitGroup
	loop := func(ctx context.Context, name string) {
		l := rlock.NewLock(one, name)
		loops.Go(func() {
			for ctx.Err() == nil {
				if held, err := l.Lock(ctx); err == nil {
					_ = l.Unlock(held)
				}
			}
		})
	}
	for i := range locks {
		loop(all, fmt.Sprint("lock ", i))
	}
	loop(busy, "busy")
	s.Failover()
	end()
	began := time.Now()
	var slow atomic.Int32
	var waits sync.WaitGroup
	for i := range locks {
		waits.Go(func() {
			for _, c := range []*rlock.Client{two, one} {
				l := rlock.NewLock(c, fmt.Sprint("lock ", i))
				held, err := l.Lock(t.Context())
				locktest.NoError(t, err)
				locktest.NoError(t, l.Unlock(held))
			}
			if time.Since(began) > lease/3 {
				slow.Add(1)
			}
		})
	}
	waits.Wait()
	endBusy()
	loops.Wait()
	if n := slow.Load(); n > 0 {
		t.Errorf("P38: %d of %d locks stood still for a former lease, until %v after the failover", n, locks, time.Since(began))
	}
}
