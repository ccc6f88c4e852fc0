package quorum_test

import (
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/internal/redistest"
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
	c, err := quorum.New(nodes, quorum.WithLockOptions(rlock.WithLease(2*time.Second)))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = c.Close() })
	return quorum.NewLock(c, "topology")
}
