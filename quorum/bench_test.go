package quorum_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/internal/redistest"
	"github.com/fencelock/fencelock/quorum"
	"github.com/fencelock/fencelock/rlock"
)

// BenchmarkPair is an acquire and its unlock with nobody else there: on one server without a quorum, and on quorums.
func BenchmarkPair(b *testing.B) {
	var nodes []redis.UniversalClient
	for range 5 {
		nodes = append(nodes, redistest.Real(b).Client())
	}
	time.Sleep(realDelay + time.Second) // until all are old enough
	pairs := func(b *testing.B, l *fenced.Lock) {
		b.ReportAllocs()
		for b.Loop() {
			held, err := l.Lock(b.Context())
			ok(b, err)
			ok(b, l.Unlock(held))
		}
	}
	b.Run("one server", func(b *testing.B) {
		c, err := rlock.New(nodes[0])
		ok(b, err)
		defer func() { _ = c.Close() }()
		pairs(b, fenced.NewLock(c, "one"))
	})
	for _, n := range []int{1, 3, 5} {
		b.Run(fmt.Sprintf("quorum of %d", n), func(b *testing.B) {
			c, err := quorum.New(nodes[:n], lease(), patient())
			ok(b, err)
			defer func() { _ = c.Close() }()
			pairs(b, quorum.NewLock(c, fmt.Sprint("quorum", n)))
		})
	}
}
