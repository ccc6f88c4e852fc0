package inspect_test

import (
	"context"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/fencelock/fencelock/rlock"
)

// The permits of a semaphore are seen as the holds of the locks of its slots, and who waits for one as in the line of the semaphore.
func TestSemaphore(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		in := newInspector(t, rdb)
		jobs := fenced.NewSemaphore(newClient(t, rdb, rlock.WithPresence("imports")), "jobs", 1)
		p, err := jobs.Acquire(t.Context())
		locktest.NoError(t, err)
		other := fenced.NewSemaphore(newClient(t, redistest.PipeClient(t, m), rlock.WithPresence("exports")), "jobs", 1)
		got := locktest.Start(func() error {
			return other.Do(t.Context(), func(context.Context, *fenced.Hold) error { return nil })
		})
		locktest.Sleep(15 * time.Second)
		locks, err := in.Look(t.Context(), "{jobs}:0", "{jobs}:*")
		locktest.NoError(t, err)
		if h := locks[0].Holder; h == nil || h.By == nil || h.By.Name != "imports" || h.Token != p.Token() || locks[0].Other != "" {
			t.Errorf("the slot: %+v", locks[0])
		}
		if all := locks[1]; all.Holder != nil || all.Other != "a semaphore" || all.Waiting != 1 || len(all.Line) != 1 || all.Line[0].By.Name != "exports" || all.Line[0].Calls != 1 {
			t.Errorf("the semaphore: %+v", all)
		}
		locktest.NoError(t, p.Unlock(t.Context()))
		locktest.NoError(t, <-got)
	})
}

// A client that is far from Redis says in its ticket how long it needs (P24).
func TestTicketOfAFarClient(t *testing.T) {
	rdb := redistest.New(t)
	const id = "01234567-89ab-cdef-0123-456789abcdef"
	locktest.NoError(t, rdb.ZAdd(t.Context(), "fencelock_line:{l}", redis.Z{Score: 1, Member: id + ":7:351"}, redis.Z{Score: 2, Member: id + ":8"}).Err())
	locks, err := newInspector(t, rdb).Look(t.Context(), "l")
	locktest.NoError(t, err)
	locktest.Equal(t, "who waits", len(locks[0].Line), 2)
	locktest.Equal(t, "the client", locks[0].Line[0].Client, id)
}
