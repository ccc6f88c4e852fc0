package lockprom_test

import (
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/observe/lockprom"
	"github.com/fencelock/fencelock/rlock"
)

// The code of docs/metrics.md.
func TestPage(t *testing.T) {
	rdb := redis.NewClient(&redis.Options{Addr: miniredis.RunT(t).Addr()})
	defer rdb.Close()

	locks := lockprom.New()
	prometheus.MustRegister(locks)
	client, err := rlock.New(rdb, rlock.WithTrace(locks.Trace()))
	if err != nil {
		t.Fatal(err)
	}
	defer prometheus.Unregister(locks)
	if err := client.Close(); err != nil {
		t.Error(err)
	}
}
