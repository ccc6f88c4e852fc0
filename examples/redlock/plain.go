package main

import (
	"context"
	"crypto/rand"
	"time"

	"github.com/redis/go-redis/v9"
)

// plainLock is Redlock without the delayed restart: the key is set on all servers, and who has set it on a majority has the
// lock for the rest of the lease.
func plainLock(ctx context.Context, rdbs []redis.UniversalClient, key string, lease time.Duration) (until time.Time, ok bool) {
	began, owner, got := time.Now(), rand.Text(), 0
	for _, rdb := range rdbs {
		ctx, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
		if set, err := rdb.SetNX(ctx, key, owner, lease).Result(); err == nil && set {
			got++
		}
		cancel()
	}
	until = began.Add(lease - lease/100 - 2*time.Millisecond)
	return until, got > len(rdbs)/2 && time.Now().Before(until)
}
