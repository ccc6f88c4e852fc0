package redistest_test

import (
	"testing"
	"time"

	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/redis/go-redis/v9"
)

func TestNewIsEmptyAndExpires(t *testing.T) {
	redistest.CheckGoroutines(t)
	first, second := redistest.New(t), redistest.New(t)
	locktest.NoError(t, first.Set(ctx, "n", 1, 20*time.Millisecond).Err())
	if n, err := second.DBSize(ctx).Result(); err != nil || n != 0 {
		t.Fatalf("the second server has %d keys, %v", n, err)
	}
	redistest.Eventually(t, bound, func() bool {
		return first.Get(ctx, "n").Err() == redis.Nil
	}, "the key expires")
}

func TestStartServesSeveralClients(t *testing.T) {
	addr := redistest.Start(t)
	locktest.NoError(t, redistest.Client(t, addr).Set(ctx, "n", 1, 0).Err())
	want(t, redistest.Client(t, addr), "1")
}

func TestIsReal(t *testing.T) {
	t.Setenv("REDIS_SERVER", "")
	if redistest.IsReal() {
		t.Error("real without REDIS_SERVER")
	}
	t.Setenv("REDIS_SERVER", "redis-server")
	if !redistest.IsReal() {
		t.Error("not real with REDIS_SERVER")
	}
}
