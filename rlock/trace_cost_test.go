package rlock_test

import (
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/locktest"
	"github.com/fencelock/fencelock/internal/redistest"
	"github.com/fencelock/fencelock/observe/locktrace"
	"github.com/fencelock/fencelock/rlock"
)

// tracedPairs are the kinds of trace whose cost is compared.
var tracedPairs = []struct {
	name  string
	trace *locktrace.Trace
}{
	{"no trace", nil},
	{"a trace without functions", &locktrace.Trace{}},
	{"a trace", &locktrace.Trace{
		WaitStarted: func(locktrace.WaitStarted) {}, AcquireDone: func(locktrace.AcquireDone) {}, HoldDone: func(locktrace.HoldDone) {},
		RenewalDone: func(locktrace.RenewalDone) {}, SubscriptionChanged: func(locktrace.SubscriptionChanged) {},
		ReleaseDelayed: func(locktrace.ReleaseDelayed) {}, ReleaseEnded: func(locktrace.ReleaseEnded) {},
	}},
}

// tracedPair returns an acquire and its Unlock, with this trace.
func tracedPair(t testing.TB, rdb *redis.Client, trace *locktrace.Trace) func() {
	t.Helper()
	var opts []rlock.Option
	if trace != nil {
		opts = append(opts, rlock.WithTrace(trace))
	}
	l := rlock.NewLock(newClient(t, rdb, opts...), "l")
	return func() {
		held, err := l.Lock(t.Context())
		if err == nil {
			err = l.Unlock(held)
		}
		locktest.NoError(t, err)
	}
}

// A trace allocates nothing, with functions or without. The goroutines of the clients allocate too, now and then: the least of several
// counts.
func TestTraceAllocations(t *testing.T) {
	server := redistest.Real(t) // another process, whose allocations are not counted
	least := make([]float64, len(tracedPairs))
	for i, c := range tracedPairs {
		pair := tracedPair(t, server.Client(), c.trace)
		for try := range 10 {
			if n := testing.AllocsPerRun(100, pair); try == 0 || n < least[i] {
				least[i] = n
			}
		}
	}
	t.Logf("allocations of a pair: %v", least)
	if least[1] > least[0] || least[2] > least[0] {
		t.Errorf("a pair allocates %v times without a trace, %v times with an empty one, %v times with one that hears all", least[0], least[1], least[2])
	}
}

// BenchmarkTrace is an acquire and its Unlock on a server of this machine, beside each other without and with a trace.
func BenchmarkTrace(b *testing.B) {
	server := redistest.Real(b)
	for _, c := range tracedPairs {
		b.Run(c.name, func(b *testing.B) {
			pair := tracedPair(b, server.Client(), c.trace)
			b.ReportAllocs()
			for b.Loop() {
				pair()
			}
		})
	}
}
