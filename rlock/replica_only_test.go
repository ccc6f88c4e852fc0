package rlock_test

import (
	"context"
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
	l := rlock.NewLock(newClient(t, rdb, rlock.WithPatience(2*time.Second), rlock.WithUnlockTimeout(time.Second)), "a")
	for what, call := range map[string]func() (context.Context, error){
		"Lock":    func() (context.Context, error) { return l.Lock(t.Context()) },
		"TryLock": func() (context.Context, error) { return l.TryLock(t.Context(), 0, 0) },
	} {
		err := answered(t, func() error { return lockOnly(call()) })
		if err == nil || !strings.Contains(err.Error(), "READONLY") || !strings.Contains(err.Error(), "ReplicaOnly") {
			t.Errorf("%s: %v", what, err)
		}
	}
	locktest.Equal(t, "keys on the master", w.Client().DBSize(t.Context()).Val(), int64(0))
}
