package rlock_test

import (
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/fencelock/fencelock/rlock"
)

// Inv12: whose failover client asks the replicas alone is told which option that is.
func TestInv12_AFailoverClientOfReplicas(t *testing.T) {
	t.Parallel()
	w := redistest.Watched(t, 1)
	rdb := w.Client(func(o *redis.FailoverOptions) { o.ReplicaOnly = true })
	l := rlock.NewLock(newClient(t, rdb, rlock.WithPatience(10*time.Millisecond), rlock.WithUnlockTimeout(time.Second)), "a")
	_, locked := l.Lock(t.Context())
	_, tried := l.TryLock(t.Context(), 0, 0)
	for what, err := range map[string]error{"Lock": locked, "TryLock": tried} {
		if err == nil || !strings.Contains(err.Error(), "READONLY") || !strings.Contains(err.Error(), "ReplicaOnly") {
			t.Errorf("%s: %v", what, err)
		}
	}
	locktest.Equal(t, "keys on the master", w.Client().DBSize(t.Context()).Val(), int64(0))
}
