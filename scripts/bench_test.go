package scripts

import (
	"fmt"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/test/redistest"
)

// benched is a client of a real server that knows the scripts.
func benched(b *testing.B) redis.UniversalClient {
	b.Helper()
	if _, err := exec.LookPath("redis-server"); err != nil && os.Getenv("REDIS_SERVER") == "" {
		b.Fatal("nothing can be measured: there is no redis-server on the PATH, and REDIS_SERVER names none")
	}
	rdb := redistest.Real(b).Client(func(o *redis.Options) { o.PoolSize = 1024 })
	load(b, rdb)
	return rdb
}

// waiter is the caller of one op at a time.
type waiter chan outcome

func (waiter) Sending(Caller) {}

func (w waiter) Answered(a Answer, err error) { w <- outcome{a, err} }

// A pair is an acquire and an unlock of a lock of one's own.

func BenchmarkDo(b *testing.B) {
	s, keys, field := New(benched(b)), newKeys(b), newField()
	b.ReportAllocs()
	for b.Loop() {
		for _, op := range []Op{Acquire(keys, true, field, lease), Unlock(keys, field, false)} {
			if a, err := s.Do(b.Context(), op); err != nil || !a.Held {
				b.Fatalf("%+v, %v", a, err)
			}
		}
	}
}

func BenchmarkSend(b *testing.B) {
	for _, n := range []int{1, 64, 1024} {
		b.Run(fmt.Sprint("g=", n), func(b *testing.B) {
			s := New(benched(b))
			var left atomic.Int64
			var all sync.WaitGroup
			left.Store(int64(b.N))
			b.ReportAllocs()
			b.ResetTimer()
			for range n {
				keys, field, heard := newKeys(b), newField(), make(waiter, 1)
				all.Go(func() {
					for left.Add(-1) >= 0 {
						op := Acquire(keys, true, field, lease)
						s.Send(&op, heard)
						if got := <-heard; got.err != nil || !got.Held {
							b.Errorf("%+v", got)
							return
						}
						op = Unlock(keys, field, false)
						s.Send(&op, heard)
						if got := <-heard; got.err != nil || !got.Held {
							b.Errorf("%+v", got)
							return
						}
					}
				})
			}
			all.Wait()
		})
	}
}
