package lockotel_test

import (
	"strings"
	"testing"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/fencelock/fencelock/observe/lockotel"
	"github.com/fencelock/fencelock/observe/locktrace"
	"github.com/fencelock/fencelock/rlock"
)

// The table of "account:42".
func table(lock string) string { table, _, _ := strings.Cut(lock, ":"); return table }

// What the functions of the trace take for an acquire and the end of its hold.
func BenchmarkTrace(b *testing.B) {
	for _, c := range []struct {
		name string
		opts []lockotel.Option
	}{
		{"plain", nil},
		{"grouped", []lockotel.Option{lockotel.WithLockGroup(table)}},
		{"sampled", []lockotel.Option{lockotel.WithTracerProvider(sdktrace.NewTracerProvider())}},
	} {
		b.Run(c.name, func(b *testing.B) {
			trace, _ := metered(b, c.opts...)
			b.ReportAllocs()
			call := locktrace.Call{Context: b.Context(), Lock: "account:42"}
			for b.Loop() {
				trace.AcquireDone(locktrace.AcquireDone{Call: call, By: locktrace.FromRedis, Took: 80 * time.Microsecond, Hold: 1})
				trace.HoldDone(locktrace.HoldDone{Lock: "account:42", Hold: 1, Held: time.Millisecond})
			}
		})
	}
	b.Run("span", func(b *testing.B) {
		trace, _ := metered(b, lockotel.WithTracerProvider(sdktrace.NewTracerProvider()))
		b.ReportAllocs()
		call := locktrace.Call{Context: b.Context(), Lock: "account:42"}
		for b.Loop() {
			trace.AcquireDone(locktrace.AcquireDone{Call: call, By: locktrace.FromRedis, Took: time.Second, Hold: 1})
			trace.HoldDone(locktrace.HoldDone{Lock: "account:42", Hold: 1, Held: time.Millisecond})
		}
	})
}

// An acquire and its Unlock, on miniredis or on the server of REDIS_SERVER.
func BenchmarkLock(b *testing.B) {
	rdb := redistest.New(b)
	trace, _ := metered(b)
	for _, c := range []struct {
		name string
		opts []rlock.Option
	}{{"without", nil}, {"with", []rlock.Option{rlock.WithTrace(trace)}}} {
		b.Run(c.name, func(b *testing.B) {
			client, err := rlock.New(rdb, c.opts...)
			locktest.NoError(b, err)
			defer client.Close()
			l := fenced.NewLock(client, "account:42")
			b.ReportAllocs()
			for b.Loop() {
				held, _, err := l.LockAndGetToken(b.Context())
				locktest.NoError(b, err)
				locktest.NoError(b, l.Unlock(held))
			}
		})
	}
}

// An uncontended acquire and the end of its hold allocate nothing.
func TestAllocs(t *testing.T) {
	trace, _ := metered(t, lockotel.WithLockGroup(table))
	allocs := locktest.Allocs(100, func() {
		call := locktrace.Call{Context: t.Context(), Lock: "account:42"}
		trace.WaitStarted(locktrace.WaitStarted{Call: call})
		trace.AcquireDone(locktrace.AcquireDone{Call: call, By: locktrace.FromHandoff, Contended: true, Hold: 1})
		trace.HoldDone(locktrace.HoldDone{Lock: "account:42", Hold: 1})
	})
	locktest.Equal(t, "allocations", allocs, 0)
}
