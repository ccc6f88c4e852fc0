package scripts

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/test/memredis"
	"github.com/fencelock/fencelock/internal/test/realtime"
	"github.com/fencelock/fencelock/internal/test/redistest"
)

// Holds of several scripts travel together, and each has its own outcome: those that are gone, one whose key is no lock,
// all others; and also where the server does not know the script yet.
func TestRenewMany(t *testing.T) {
	const n = 3*maxScript + 7
	rdb := redistest.Client(t, redistest.Start(t))
	s := New(rdb)
	for what, prepare := range map[string]func(){
		"unknown script": func() {
			if err := rdb.ScriptFlush(t.Context()).Err(); err != nil {
				t.Fatal(err)
			}
		},
		"known script": func() { load(t, rdb) },
	} {
		t.Run(what, func(t *testing.T) {
			holds := held(t, rdb, n)
			gone := map[int]bool{0: true, maxScript - 1: true, maxScript: true, n - 1: true}
			for i := range gone {
				rdb.Del(t.Context(), holds[i].Keys.Lock)
			}
			const bad = maxScript + 3
			rdb.Del(t.Context(), holds[bad].Keys.Lock)
			rdb.Set(t.Context(), holds[bad].Keys.Lock, "no lock", 0)
			prepare()
			h := &counting{}
			if what == "known script" {
				rdb.AddHook(h)
			}
			s.Renew(t.Context(), holds)
			if sent := h.sent.Load(); sent > 0 {
				t.Errorf("%d commands were sent by themselves", sent)
			}
			for i, hold := range holds {
				switch {
				case gone[i]:
					if !errors.Is(hold.Err, ErrGone) {
						t.Errorf("hold %d is gone, and renew says %v", i, hold.Err)
					}
				case i == bad:
					if !errors.Is(hold.Err, ErrGone) || !strings.Contains(hold.Err.Error(), "WRONGTYPE") {
						t.Errorf("the lock of hold %d is none, and renew says %v", i, hold.Err)
					}
				case hold.Err != nil:
					t.Errorf("hold %d: renew says %v", i, hold.Err)
				case rdb.PTTL(t.Context(), hold.Keys.Lock).Val() < hold.Lease-time.Minute:
					t.Errorf("hold %d is not renewed", i)
				}
			}
		})
	}
}

// Where no answer comes over a connection that stays, no hold has an outcome but the error. Where the connection has ended all is sent again.
func TestRenewManyWithoutAnAnswer(t *testing.T) {
	realtime.Test(t, "answers within 100 ms")
	for what, lost := range map[string]redistest.Action{"stays": redistest.SwallowReplySilently, "has ended": redistest.SwallowReply} {
		t.Run(what, func(t *testing.T) {
			addr := redistest.Start(t)
			direct := redistest.Client(t, addr)
			holds := held(t, direct, 2*maxScript+1)
			proxy := redistest.NewProxy(t, addr)
			rdb := redistest.Client(t, proxy.Addr(), func(o *redis.Options) {
				if what == "stays" {
					o.ReadTimeout = 100 * time.Millisecond
				}
			})
			load(t, direct) // within 100 ms a busy machine might not
			proxy.On("the reply to the second script is lost", redistest.Nth(2, redistest.Script(renew.sha)), lost)
			New(rdb).Renew(t.Context(), holds)
			if what == "has ended" {
				mustBeRenewed(t, direct, holds)
				return
			}
			for i, hold := range holds {
				if i >= maxScript && (hold.Err == nil || errors.Is(hold.Err, ErrGone)) {
					t.Errorf("hold %d: renew says %v", i, hold.Err)
				}
			}
		})
	}
}

// P8: renewals of more than a hundred holds are a pipeline, for which go-redis has connections of their own. They go past all of those that
// ended while they were idle.
func TestP8_EndedConnectionsForPipelinesAreLeft(t *testing.T) {
	const idle = 30
	server := redistest.Real(t)
	direct := server.Client()
	holds := held(t, direct, maxScript+1)
	separate := false
	rdb := redistest.Client(t, server.Addr(), func(o *redis.Options) {
		o.Dialer, separate = redistest.BlindDialer, memredis.SetPipelinePool(o, 2*idle)
	})
	if !separate {
		t.Skip("this version of go-redis has no connections of their own for pipelines")
	}
	redistest.LeaveIdlePipelines(t, rdb, idle)
	if err := direct.Do(t.Context(), "client", "kill", "type", "normal", "skipme", "yes").Err(); err != nil {
		t.Fatal(err)
	}
	New(rdb).Renew(t.Context(), holds)
	mustBeRenewed(t, direct, holds)
}

// A cluster without a cluster client: what is refused is sent lock by lock.
func TestRenewManyAcrossSlots(t *testing.T) {
	t.Parallel()
	rdb := oneMaster(t).Client()
	s, holds := New(rdb), held(t, rdb, maxScript+50)
	for range 2 {
		s.Renew(t.Context(), holds)
		mustBeRenewed(t, rdb, holds)
	}
	if !s.single.Load() {
		t.Error("the CROSSSLOT was not noticed")
	}
}

// BenchmarkRenew is the client's part of a renewal, and the server's with its round trip.
func BenchmarkRenew(b *testing.B) {
	for _, n := range []int{1, maxScript, 10 * maxScript} {
		b.Run(fmt.Sprint("holds=", n), func(b *testing.B) {
			rdb := benched(b)
			s, holds := New(rdb), held(b, rdb, n)
			b.ReportAllocs()
			for b.Loop() {
				if s.Renew(b.Context(), holds); holds[n-1].Err != nil {
					b.Fatal(holds[n-1].Err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/hold")
		})
	}
}
