package lockprom_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/fencelock/fencelock/observe/lockprom"
	"github.com/fencelock/fencelock/rlock"
)

// However many slots a semaphore has, it is one group where locks are grouped by their names, and each end of a permit takes it off the gauge
// of that group.
func TestSemaphoreIsOneGroup(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		c := lockprom.New(lockprom.WithLockGroup(func(lock string) string { return lock }))
		client, err := rlock.New(rdb, rlock.WithTrace(c.Trace()))
		locktest.NoError(t, err)
		defer client.Close()
		const n = 120 // more than there are groups
		jobs := fenced.NewSemaphore(client, "jobs", n)
		acquire := func(opts ...rlock.AcquireOption) *fenced.Hold {
			p, err := jobs.Acquire(t.Context(), opts...)
			locktest.NoError(t, err)
			return p
		}
		unlocked, forced := acquire(), acquire()
		for range n - 2 {
			acquire(rlock.Lease(time.Minute)) // to be lost
		}
		_, err = jobs.Acquire(t.Context(), rlock.Wait(0))
		locktest.IsError(t, err, rlock.ErrNotAcquired)
		ctx, stop := context.WithTimeout(t.Context(), 5*time.Second)
		defer stop()
		waits := locktest.Start(func() error { _, err := jobs.Acquire(ctx); return err })
		locktest.Sleep(time.Second)
		now := series(t, c)
		locktest.Equal(t, "permits", now["fencelock_hold_active{group={jobs}:*}"], n)
		locktest.Equal(t, "waiters", now["fencelock_waiter_active{group={jobs}:*}"], 1)
		locktest.IsError(t, <-waits, context.DeadlineExceeded)

		locktest.NoError(t, unlocked.Unlock(t.Context()))
		_, err = jobs.ForceRelease(t.Context(), forced.Slot())
		locktest.NoError(t, err)
		other := fenced.NewSemaphore(newOther(t, m), "jobs", n)
		_, err = other.ForceRelease(t.Context(), 2)
		locktest.NoError(t, err)
		locktest.Sleep(2 * time.Minute)
		now = series(t, c)
		for name, want := range map[string]float64{
			"fencelock_hold_active{group={jobs}:*}":                                   0,
			"fencelock_hold_oldest_seconds{group={jobs}:*}":                           0,
			"fencelock_waiter_active{group={jobs}:*}":                                 0,
			"fencelock_hold_duration_seconds{group={jobs}:* outcome=unlocked}":        1,
			"fencelock_hold_lost_total{group={jobs}:* outcome=forced}":                1,
			"fencelock_hold_lost_total{group={jobs}:* outcome=lost}":                  n - 2,
			"fencelock_acquire_duration_seconds{group={jobs}:* outcome=not_acquired}": 1,
		} {
			locktest.Equal(t, name, now[name], want)
		}
		for name := range now {
			if _, group, grouped := strings.Cut(name, "group="); grouped && !strings.HasPrefix(group, "{jobs}:*") {
				t.Errorf("there is a group more: %s", name)
			}
		}
	})
}

// newOther is a client of another process, without metrics.
func newOther(t *testing.T, m *miniredis.Miniredis) *rlock.Client {
	client, err := rlock.New(redistest.PipeClient(t, m))
	locktest.NoError(t, err)
	t.Cleanup(func() { _ = client.Close() })
	return client
}
