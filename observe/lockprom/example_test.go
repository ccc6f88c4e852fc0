package lockprom_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/alicebob/miniredis/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/observe/lockprom"
	"github.com/fencelock/fencelock/rlock"
)

// The metrics of a process, with the locks of each table apart.
func Example() {
	locks := lockprom.New(lockprom.WithLockGroup(func(lock string) string {
		table, _, _ := strings.Cut(lock, ":")
		return table
	}))
	registry := prometheus.NewRegistry() // in a service: prometheus.DefaultRegisterer, and promhttp.Handler()
	registry.MustRegister(locks)

	server, err := miniredis.Run() // in a service: a Redis
	if err != nil {
		panic(err)
	}
	defer server.Close()
	rdb := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer rdb.Close()
	client, err := rlock.New(rdb, rlock.WithTrace(locks.Trace()))
	if err != nil {
		panic(err)
	}
	defer client.Close()

	ctx := context.Background()
	for _, name := range []string{"account:42", "account:43", "invoice:7"} {
		lock := fenced.NewLock(client, name)
		held, _, err := lock.LockAndGetToken(ctx)
		if err != nil {
			panic(err)
		}
		defer lock.Unlock(held)
	}
	families, err := registry.Gather()
	if err != nil {
		panic(err)
	}
	for _, family := range families {
		if family.GetName() == "fencelock_hold_active" {
			for _, m := range family.Metric {
				fmt.Println(family.GetName(), m.Label[0].GetValue(), m.Gauge.GetValue())
			}
		}
	}
	// Output:
	// fencelock_hold_active account 2
	// fencelock_hold_active invoice 1
}
