package rlock_test

import (
	"runtime"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/redistest"
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

// A trace allocates nothing, with functions or without. The goroutines of the clients allocate too, and more of them on a busy
// machine, and so does a sync.Pool that the race detector empties at random: the least of several means counts, and half an
// allocation is none. The means are taken in turn, so that a busy moment meets all kinds of trace, and again for as long as noise is
// left. An allocation of the trace's own is in each of its means, however many are taken.
func TestTraceAllocations(t *testing.T) {
	server := redistest.Real(t) // another process, whose allocations are not counted
	var pairs []func()
	for _, c := range tracedPairs {
		pairs = append(pairs, tracedPair(t, server.Client(), c.trace))
	}
	least := make([]float64, len(pairs))
	for round := range 30 {
		for i, pair := range pairs {
			if n := allocations(pair); round == 0 || n < least[i] {
				least[i] = n
			}
		}
		if most := least[0] + 0.5; round >= 4 && least[1] <= most && least[2] <= most {
			t.Logf("allocations of a pair, after %d rounds: %.2f", round+1, least)
			return
		}
	}
	t.Errorf("a pair allocates %.2f times without a trace, %.2f times with an empty one, %.2f times with one that hears all", least[0], least[1], least[2])
}

// allocations is how often do allocates, the mean of a thousand runs. testing.AllocsPerRun gives whole numbers only.
func allocations(do func()) float64 {
	const runs = 1000
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	do()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range runs {
		do()
	}
	runtime.ReadMemStats(&after)
	return float64(after.Mallocs-before.Mallocs) / runs
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
