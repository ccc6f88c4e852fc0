package rlock_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/realtime"
	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/fencelock/fencelock/rlock"
)

// slowAnswers returns a hook that keeps each answer of Redis back for a while.
func slowAnswers(d time.Duration) locktest.Hook {
	return func(_ context.Context, _ redis.Cmder, send func() error) error {
		err := send()
		time.Sleep(d)
		return err
	}
}

// Callers that give up sooner than Redis answers: what their attempts have taken is released as fast as it was taken, and
// by few goroutines (P3, Inv6, Inv9).
func TestP3_GivenUpAcquiresAreReleasedInCompany(t *testing.T) {
	realtime.Test(t, "calls of 20 ms and less, and the goroutines of 3 s")
	for _, load := range []struct {
		name     string
		answers  time.Duration
		deadline func() time.Duration
	}{
		{"answers after 50 ms, deadlines of 20 ms", 50 * time.Millisecond, func() time.Duration { return 20 * time.Millisecond }},
		{"deadlines of 0 to 8 ms", 0, func() time.Duration { return rand.N(8 * time.Millisecond) }},
	} {
		t.Run(load.name, func(t *testing.T) {
			direct := redistest.New(t)
			rdb := redistest.Client(t, direct.Options().Addr, func(o *redis.Options) { o.Dialer = redistest.Unprobed(nil) })
			if load.answers > 0 {
				rdb.AddHook(slowAnswers(load.answers))
			}
			c := newClient(t, rdb)
			const callers = 300
			before := runtime.NumGoroutine()
			stop := make(chan struct{})
			var all sync.WaitGroup
			for caller := range callers {
				all.Go(func() {
					for n := 0; !closedNow(stop); n++ {
						ctx, cancel := context.WithTimeout(context.Background(), load.deadline())
						l := rlock.NewLock(c, fmt.Sprintf("l:%d:%d", caller, n%8))
						if held, err := l.Lock(ctx); err == nil {
							_ = l.Unlock(held)
						}
						cancel()
					}
				})
			}
			most := 0
			for end := time.Now().Add(3 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
				most = max(most, runtime.NumGoroutine()-before)
			}
			close(stop)
			all.Wait()
			began := time.Now()
			// A ghost would stay for a lease, which is 30 s.
			redistest.Eventually(t, 20*time.Second, func() bool { return direct.DBSize(t.Context()).Val() == 0 }, "no lock is left")
			t.Logf("at most %d goroutines for %d callers; the last lock was free after %v", most, callers, time.Since(began).Round(time.Millisecond))
			if most > 10*callers {
				t.Errorf("%d goroutines for %d callers", most, callers)
			}
			redistest.Eventually(t, 20*time.Second, func() bool { return c.Books() == "" }, "nothing is left on the books: %s", c.Books())
		})
	}
}

func closedNow(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}
