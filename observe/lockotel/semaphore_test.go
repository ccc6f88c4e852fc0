package lockotel_test

import (
	"context"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/observe/lockotel"
	"github.com/fencelock/fencelock/rlock"
)

// However many slots a semaphore has, it is one group where locks are grouped by their names.
func TestSemaphoreIsOneGroup(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		trace, r := metered(t, lockotel.WithLockGroup(func(lock string) string { return lock }))
		client, err := rlock.New(rdb, rlock.WithTrace(trace))
		locktest.NoError(t, err)
		defer client.Close()
		const n = 120 // more than there are groups
		jobs := fenced.NewSemaphore(client, "jobs", n)
		for range n {
			_, err := jobs.Acquire(t.Context(), rlock.Lease(time.Minute))
			locktest.NoError(t, err)
		}
		locktest.Sleep(2 * time.Minute) // all are lost
		var all metricdata.ResourceMetrics
		locktest.NoError(t, r.Collect(t.Context(), &all))
		groups := map[string]bool{}
		note := func(set attribute.Set) {
			if v, is := set.Value("group"); is {
				groups[v.AsString()] = true
			}
		}
		for _, m := range all.ScopeMetrics[0].Metrics {
			switch data := m.Data.(type) {
			case metricdata.Sum[int64]:
				for _, p := range data.DataPoints {
					note(p.Attributes)
				}
			case metricdata.Gauge[float64]:
				for _, p := range data.DataPoints {
					note(p.Attributes)
				}
			case metricdata.Histogram[float64]:
				for _, p := range data.DataPoints {
					note(p.Attributes)
				}
			}
		}
		locktest.DeepEqual(t, "groups", groups, map[string]bool{"{jobs}:*": true})
	})
}

// The span of a wait for a permit, and the event of one that is lost, name the semaphore and the slot's lock.
func TestSpansOfAPermit(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		trace, tracer, r := recorded(t)
		client, err := rlock.New(rdb, rlock.WithTrace(trace))
		locktest.NoError(t, err)
		defer client.Close()
		jobs := fenced.NewSemaphore(client, "jobs", 1)
		p, err := jobs.Acquire(t.Context())
		locktest.NoError(t, err)
		ctx, parent := tracer.Start(t.Context(), "import")
		waits := locktest.Start(func() error {
			return jobs.Do(ctx, func(ctx context.Context, p *fenced.Hold) error {
				m.Del(p.Name())
				<-ctx.Done()
				return nil
			})
		})
		locktest.Sleep(2 * time.Second)
		locktest.NoError(t, p.Unlock(t.Context()))
		locktest.IsError(t, <-waits, rlock.ErrLost)
		locktest.Sleep(time.Millisecond) // another goroutine tells of the loss
		parent.End()
		ended := r.Ended()
		locktest.Equal(t, "spans", len(ended), 2)
		wantAttributes(t, "the wait", ended[0].Attributes(),
			attribute.String("fencelock.lock", "{jobs}:*"), attribute.String("fencelock.slot", "{jobs}:0"), attribute.String("fencelock.outcome", "acquired"),
			attribute.String("fencelock.how", "redis"), attribute.Bool("fencelock.contended", true), attribute.Int64("fencelock.token", 2))
		events := ended[1].Events()
		locktest.Equal(t, "events", len(events), 1)
		slot := attribute.Value{}
		for _, a := range events[0].Attributes {
			if a.Key == "fencelock.slot" {
				slot = a.Value
			}
		}
		locktest.Equal(t, "the slot that was lost", slot.AsString(), "{jobs}:0")
	})
}
