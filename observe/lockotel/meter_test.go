package lockotel_test

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	tracenoop "go.opentelemetry.io/otel/trace/noop"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/guard"
	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/observe/lockmetrics"
	"github.com/fencelock/fencelock/observe/lockotel"
	"github.com/fencelock/fencelock/observe/locktrace"
	"github.com/fencelock/fencelock/rlock"
)

// metered gives a trace and a reader of its metrics.
func metered(t testing.TB, opts ...lockotel.Option) (*locktrace.Trace, *sdkmetric.ManualReader) {
	t.Helper()
	r := sdkmetric.NewManualReader()
	opts = append([]lockotel.Option{lockotel.WithMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(r))), lockotel.WithTracerProvider(tracenoop.NewTracerProvider())}, opts...)
	trace, err := lockotel.New(opts...)
	locktest.NoError(t, err)
	return trace, r
}

// read is the sum of an instrument over its attributes; of a histogram the count.
func read(t *testing.T, r *sdkmetric.ManualReader, of lockmetrics.Instrument) (sum int64) {
	t.Helper()
	var all metricdata.ResourceMetrics
	locktest.NoError(t, r.Collect(t.Context(), &all))
	for _, m := range all.ScopeMetrics[0].Metrics {
		if m.Name != of.Name {
			continue
		}
		locktest.Equal(t, "unit", m.Unit, of.Unit)
		switch data := m.Data.(type) {
		case metricdata.Sum[int64]:
			locktest.Equal(t, of.Name+" only grows", data.IsMonotonic, of.Kind == lockmetrics.Counter)
			for _, p := range data.DataPoints {
				sum += p.Value
			}
		case metricdata.Gauge[float64]:
			for _, p := range data.DataPoints {
				sum += int64(p.Value)
			}
		case metricdata.Histogram[float64]:
			for _, p := range data.DataPoints {
				sum += int64(p.Count)
			}
		}
		return sum
	}
	t.Fatalf("there is no %s", of.Name)
	return 0
}

// A client with waits, a lost lock, a write that came too late, and an end in the middle of it all.
func TestClient(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		trace, r := metered(t)
		client, err := rlock.New(rdb, rlock.WithTrace(trace))
		locktest.NoError(t, err)
		marks := guard.NewMemory(guard.WithTrace(trace))
		l := fenced.NewLock(client, "l")
		held, first, err := l.LockAndGetToken(t.Context())
		locktest.NoError(t, err)
		waits := locktest.StartLock(func() (context.Context, error) { return locktest.NoToken(l.LockAndGetToken(t.Context())) })
		locktest.Sleep(15 * time.Second)
		locktest.Equal(t, "holds", read(t, r, lockmetrics.HoldActive), 1)
		locktest.Equal(t, "waiters", read(t, r, lockmetrics.WaiterActive), 1)
		locktest.Equal(t, "age of the oldest hold", read(t, r, lockmetrics.HoldOldest), 15)
		locktest.Equal(t, "age of the longest wait", read(t, r, lockmetrics.WaiterOldest), 15)
		if read(t, r, lockmetrics.RenewalMargin) == 0 {
			t.Error("no renewal")
		}

		m.Del("l")
		<-held.Done()
		got := <-waits
		runtime.KeepAlive(held) // otherwise it could be lost as one that was dropped
		locktest.NoError(t, got.Err)
		second, err := l.Token(got.Ctx)
		locktest.NoError(t, err)
		locktest.NoError(t, marks.Check(t.Context(), "l", second))
		locktest.IsError(t, marks.Check(t.Context(), "l", first), guard.ErrStale)
		waits = locktest.StartLock(func() (context.Context, error) { return locktest.NoToken(l.LockAndGetToken(t.Context())) })
		locktest.Sleep(time.Second)
		locktest.NoError(t, client.Close())
		locktest.IsError(t, (<-waits).Err, rlock.ErrClosed)
		locktest.Sleep(time.Second)
		for _, c := range []struct {
			of   lockmetrics.Instrument
			want int64
		}{
			{lockmetrics.HoldActive, 0},
			{lockmetrics.WaiterActive, 0},
			{lockmetrics.HoldOldest, 0},
			{lockmetrics.WaiterOldest, 0},
			{lockmetrics.ReleaseDelayed, 0},
			{lockmetrics.HoldLost, 1},
			{lockmetrics.HoldDuration, 2},
			{lockmetrics.AcquireDuration, 3},
			{lockmetrics.WriteRefused, 1},
			{lockmetrics.SubscriptionLost, 0},
		} {
			locktest.Equal(t, c.of.Name, read(t, r, c.of), c.want)
		}
	})
}
