package quorum_test

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/fencelock/fencelock/quorum"
	"github.com/fencelock/fencelock/rlock"
)

// BenchmarkTopology is an acquire and its unlock with nobody else there, one caller, on each way to run Redis: the figures
// of docs/choosing.md. The servers are processes on this machine, so that the way between them costs next to nothing.
func BenchmarkTopology(b *testing.B) {
	alone := func(opts ...rlock.Option) func(*testing.B, redis.UniversalClient) *fenced.Lock {
		return func(b *testing.B, rdb redis.UniversalClient) *fenced.Lock {
			c, err := rlock.New(rdb, opts...)
			if err != nil {
				b.Fatal(err)
			}
			b.Cleanup(func() { _ = c.Close() })
			return fenced.NewLock(c, "topology")
		}
	}
	always := []string{"--appendonly", "yes", "--appendfsync", "always"}
	everysec := []string{"--appendonly", "yes", "--appendfsync", "everysec"}
	for _, topology := range []struct {
		name string
		lock func(b *testing.B) *fenced.Lock
	}{
		{"server", func(b *testing.B) *fenced.Lock { return alone()(b, redistest.Real(b).Client()) }},
		{"server/aof=everysec", func(b *testing.B) *fenced.Lock { return alone()(b, redistest.Real(b, everysec...).Client()) }},
		{"server/aof=always", func(b *testing.B) *fenced.Lock { return alone()(b, redistest.Real(b, always...).Client()) }},
		{"server/aof=always/WithFsync=1,0", func(b *testing.B) *fenced.Lock {
			s := redistest.Real(b, always...)
			if s.Info("server", "redis_version") < "7.2" {
				b.Fatal("this Redis has no WAITAOF: set REDIS_SERVER to one of 7.2 or later, or to Valkey")
			}
			return alone(rlock.WithFsync(1, 0, time.Second))(b, s.Client())
		}},
		{"replicas=2", func(b *testing.B) *fenced.Lock { return alone()(b, redistest.Replicated(b, 2).Master.Client()) }},
		{"replicas=2/WithReplicas=1", func(b *testing.B) *fenced.Lock {
			return alone(rlock.WithReplicas(1, time.Second))(b, redistest.Replicated(b, 2).Master.Client())
		}},
		{"replicas=2/WithReplicas=2", func(b *testing.B) *fenced.Lock {
			return alone(rlock.WithReplicas(2, time.Second))(b, redistest.Replicated(b, 2).Master.Client())
		}},
		{"sentinel", func(b *testing.B) *fenced.Lock { return alone()(b, redistest.Watched(b, 2).Client()) }},
		{"cluster", func(b *testing.B) *fenced.Lock { return alone()(b, redistest.Clustered(b, 3, 3).Client()) }},
		{"quorum=1", func(b *testing.B) *fenced.Lock { return quorumLock(b, 1, 0) }},
		{"quorum=3", func(b *testing.B) *fenced.Lock { return quorumLock(b, 3, 0) }},
		{"quorum=5", func(b *testing.B) *fenced.Lock { return quorumLock(b, 5, 0) }},
		{"quorum=5/down=2", func(b *testing.B) *fenced.Lock { return quorumLock(b, 5, 2) }},
	} {
		b.Run(topology.name, func(b *testing.B) {
			lock := topology.lock(b)
			pair := func() {
				held, _, err := lock.LockAndGetToken(b.Context())
				if err == nil {
					err = lock.Unlock(held)
				}
				if err != nil {
					b.Fatal(err)
				}
			}
			for range 100 {
				pair()
			}
			var times []time.Duration
			for b.Loop() {
				began := time.Now()
				pair()
				times = append(times, time.Since(began))
			}
			slices.Sort(times)
			b.ReportMetric(float64(times[len(times)/2].Microseconds()), "p50-µs")
			b.ReportMetric(float64(times[len(times)*99/100].Microseconds()), "p99-µs")
		})
	}
}

// quorumLock is a lock on so many servers, of which some are down. Its leases are short, because a server that has just
// started does not count for as long.
func quorumLock(b *testing.B, servers, down int) *fenced.Lock {
	b.Helper()
	var nodes []redis.UniversalClient
	for i := range servers {
		s := redistest.Real(b)
		nodes = append(nodes, s.Client())
		if i < down {
			s.Kill()
		}
	}
	c, err := quorum.New(nodes, rlock.WithLease(2*time.Second), rlock.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = c.Close() })
	return fenced.NewLock(c, "topology")
}

// BenchmarkClients is what clients of one lock on five servers get that come back at once, with one caller each: acquires
// a second, scripts for each acquire and server, and how many calls with a wait of 10 s failed.
func BenchmarkClients(b *testing.B) {
	for _, n := range []int{1, 4, 16, 32, 64, 128} {
		b.Run(fmt.Sprint("clients=", n), func(b *testing.B) {
			servers := make([]*redistest.Server, 5)
			addrs := make([]string, len(servers))
			for i := range servers {
				servers[i] = redistest.Real(b)
				addrs[i] = servers[i].Addr()
			}
			contend(b, servers, addrs, n)
		})
	}
}

// BenchmarkFarNode is the same with four clients, of whose five servers one is 30 ms away.
func BenchmarkFarNode(b *testing.B) {
	for far := range 5 {
		b.Run(fmt.Sprint("node=", far), func(b *testing.B) {
			servers := make([]*redistest.Server, 5)
			addrs := make([]string, len(servers))
			for i := range servers {
				servers[i] = redistest.Real(b)
				addrs[i] = servers[i].Addr()
			}
			addrs[far] = away(b, addrs[far], 15*time.Millisecond)
			contend(b, servers, addrs, 4)
		})
	}
}

func contend(b *testing.B, servers []*redistest.Server, addrs []string, n int) {
	locks := make([]*fenced.Lock, n)
	for i := range locks {
		var nodes []redis.UniversalClient
		for _, addr := range addrs {
			nodes = append(nodes, redistest.Client(b, addr))
		}
		c, err := quorum.New(nodes, rlock.WithLease(2*time.Second), rlock.WithLogger(slog.New(slog.DiscardHandler)))
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = c.Close() })
		locks[i] = fenced.NewLock(c, "contended")
	}
	pair := func(l *fenced.Lock) error {
		held, _, err := l.TryLockAndGetToken(context.Background(), 10*time.Second, 0)
		if err != nil {
			return err
		}
		return l.Unlock(held)
	}
	for _, l := range locks { // one after the other: they connect
		for pair(l) != nil { // until the servers are old enough
		}
	}
	scripts := func() (calls int) {
		for _, s := range servers {
			for _, name := range []string{"cmdstat_eval", "cmdstat_evalsha"} {
				_, stat, _ := strings.Cut(s.Info("commandstats", name), "calls=")
				stat, _, _ = strings.Cut(stat, ",")
				count, _ := strconv.Atoi(stat)
				calls += count
			}
		}
		return calls
	}
	cpu := func() (used time.Duration) { // of clients and servers: a busy machine changes that less than the time
		var self syscall.Rusage
		_ = syscall.Getrusage(syscall.RUSAGE_SELF, &self)
		used = time.Duration(self.Utime.Nano() + self.Stime.Nano())
		for _, s := range servers {
			for _, name := range []string{"used_cpu_user", "used_cpu_sys"} {
				seconds, _ := strconv.ParseFloat(s.Info("cpu", name), 64)
				used += time.Duration(seconds * float64(time.Second))
			}
		}
		return used
	}
	var failed, got atomic.Int64
	run := func(wanted int64) {
		var workers sync.WaitGroup
		for _, l := range locks {
			workers.Go(func() {
				for got.Add(1) <= wanted {
					if err := pair(l); err != nil {
						if failed.Add(1) == 1 {
							b.Log(err)
						}
					}
				}
			})
		}
		workers.Wait()
	}
	run(int64(n))
	failed.Store(0)
	got.Store(0)
	before, used, began := scripts(), cpu(), time.Now()
	b.ResetTimer()
	run(int64(b.N))
	b.StopTimer()
	b.ReportMetric(float64(b.N)/time.Since(began).Seconds(), "acquires/s")
	b.ReportMetric(float64(scripts()-before)/float64(b.N)/float64(len(servers)), "scripts/acquire/node")
	b.ReportMetric(float64((cpu()-used).Microseconds())/float64(b.N), "cpu-µs/acquire")
	b.ReportMetric(float64(failed.Load()), "failed")
}

// away is the address of a relay to a server, where everything takes so long in each direction.
func away(b *testing.B, addr string, by time.Duration) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = l.Close() })
	type chunk struct {
		due  time.Time
		data []byte
	}
	relay := func(from, to net.Conn) {
		chunks := make(chan chunk, 10_000)
		go func() {
			defer func() { _ = to.Close() }()
			for c := range chunks {
				time.Sleep(time.Until(c.due))
				if _, err := to.Write(c.data); err != nil {
					_ = from.Close()
				}
			}
		}()
		defer close(chunks)
		for {
			data := make([]byte, 4096)
			n, err := from.Read(data)
			if err != nil {
				return
			}
			chunks <- chunk{time.Now().Add(by), data[:n]}
		}
	}
	go func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", addr)
			if err != nil {
				_ = near.Close()
				continue
			}
			go relay(near, far)
			go relay(far, near)
		}
	}()
	return l.Addr().String()
}
