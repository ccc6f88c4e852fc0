package rlock_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/fencelock/fencelock/rlock"
)

// A failover by command: the old master goes on taking and releasing locks until it is told, and the new one never hears of that.
// No lock stays taken by a hold that its client has released, neither for that client nor, while that does anything, for others (P38).
// Where writes are paused first, as docs/choosing.md has it, there is no such hold.
func TestP38_SentinelFailoverOfABusyMaster(t *testing.T) {
	t.Parallel()
	for name, pause := range map[string]bool{"as it is": false, "writes are paused": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const locks, lease = 20, 3 * time.Minute
			s := redistest.Watched(t, 2)
			var log locktest.Log
			opts := []rlock.Option{rlock.WithLease(lease), rlock.WithPatience(failoverBound), rlock.WithLogger(log.Logger())}
			one, two := newClient(t, s.Client(), opts...), newClient(t, s.Client(), opts...)
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
			old := s.Master()
			if pause {
				s.Settle()
				old.Do("client", "pause", 600000, "write") // from now on a Sentinel that publishes on the master gets no answer
				(&redistest.Replication{Master: old, Replicas: s.Nodes[1:]}).Sync()
				old.Follow(s.FailoverFrom(old)) // before it goes on: what it postponed would be done, and lost
				old.Do("client", "unpause")
			} else {
				s.Failover()
			}
			end()
			began := time.Now()
			var slow atomic.Int32
			var waits sync.WaitGroup
			for i := range locks {
				waits.Go(func() {
					for _, c := range []*rlock.Client{two, one} {
						l := rlock.NewLock(c, fmt.Sprint("lock ", i))
						held, err := l.Lock(t.Context())
						if locktest.NoError(t, err); err == nil {
							locktest.NoError(t, l.Unlock(held))
						}
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
			locktest.NoError(t, one.Close()) // and the log has all
			if lines := log.With("that is over"); pause && len(lines) > 0 {
				t.Errorf("a release was lost although writes were paused: %v", lines)
			}
		})
	}
}
