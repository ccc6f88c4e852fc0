package main

import (
	"context"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"
)

// pings are how long PING took, sorted, and the worst 99th percentile of half a second of them.
type pings struct {
	took  []time.Duration
	worst time.Duration
}

// ping asks the server every few milliseconds until the context ends: what a command of somebody else waits.
func ping(ctx context.Context, addr string) pings {
	rdb := redis.NewClient(&redis.Options{Addr: addr, PoolSize: 1})
	defer func() { _ = rdb.Close() }()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	var p pings
	var half []time.Duration // of the current half second
	for end := time.Now().Add(time.Second / 2); ; {
		select {
		case <-ctx.Done():
			slices.Sort(p.took)
			return p
		case <-tick.C:
		}
		if time.Now().After(end) {
			slices.Sort(half)
			p.worst = max(p.worst, quantile(half, .99))
			half, end = half[:0], time.Now().Add(time.Second/2)
		}
		began := time.Now()
		if rdb.Ping(ctx).Err() == nil {
			took := time.Since(began)
			p.took, half = append(p.took, took), append(half, took)
		}
	}
}

// pingFor is ping for a while.
func pingFor(ctx context.Context, addr string, d time.Duration) pings {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	return ping(ctx, addr)
}

func (p pings) quantile(q float64) time.Duration { return quantile(p.took, q) }

func quantile(sorted []time.Duration, q float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]
}
