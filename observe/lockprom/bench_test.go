package lockprom_test

import (
	"strings"
	"testing"
	"time"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/fencelock/fencelock/observe/lockprom"
	"github.com/fencelock/fencelock/observe/locktrace"
	"github.com/fencelock/fencelock/rlock"
)

// The table of "account:42".
func table(lock string) string { table, _, _ := strings.Cut(lock, ":"); return table }

// What the functions of the trace take for an acquire and the end of its hold.
func BenchmarkTrace(b *testing.B) {
	for name, opts := range map[string][]lockprom.Option{"plain": nil, "grouped": {lockprom.WithLockGroup(table)}} {
		b.Run(name, func(b *testing.B) { benchmarkTrace(b, lockprom.New(opts...).Trace()) })
	}
}

func benchmarkTrace(b *testing.B, trace *locktrace.Trace) {
	b.ReportAllocs()
	call := locktrace.Call{Context: b.Context(), Lock: "account:42"}
	for b.Loop() {
		trace.AcquireDone(locktrace.AcquireDone{Call: call, By: locktrace.FromRedis, Took: 80 * time.Microsecond, Hold: 1})
		trace.HoldDone(locktrace.HoldDone{Lock: "account:42", Hold: 1, Held: time.Millisecond})
	}
}

// An acquire and its Unlock, on miniredis or on the server of REDIS_SERVER.
func BenchmarkLock(b *testing.B) {
	rdb := redistest.New(b)
	for _, c := range []struct {
		name string
		opts []rlock.Option
	}{{"without", nil}, {"with", []rlock.Option{rlock.WithTrace(lockprom.New().Trace())}}} {
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
	trace := lockprom.New(lockprom.WithLockGroup(table)).Trace()
	allocs := locktest.Allocs(100, func() {
		call := locktrace.Call{Lock: "account:42"}
		trace.WaitStarted(locktrace.WaitStarted{Call: call})
		trace.AcquireDone(locktrace.AcquireDone{Call: call, By: locktrace.FromHandoff, Contended: true})
		trace.HoldDone(locktrace.HoldDone{Lock: "account:42"})
	})
	locktest.Equal(t, "allocations", allocs, 0)
}
