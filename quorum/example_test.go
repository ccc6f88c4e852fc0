package quorum_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/fencelock/fencelock/quorum"
	"github.com/fencelock/fencelock/rlock"
)

// exampleNodes starts five Redis servers inside the process, which say that they have been up for an hour.
func exampleNodes() (nodes []redis.UniversalClient, servers []*miniredis.Miniredis) {
	for i := range 5 {
		m := miniredis.NewMiniRedis()
		m.ClockTTL(true) // leases run out by the clock
		if err := m.Start(); err != nil {
			panic(err)
		}
		redistest.TellUptime(m, fmt.Sprint("run", i), time.Now().Add(-time.Hour))
		servers = append(servers, m)
		nodes = append(nodes, redis.NewClient(&redis.Options{Addr: m.Addr()}))
	}
	return nodes, servers
}

func ExampleNew() {
	nodes, servers := exampleNodes()
	for i := range nodes {
		defer servers[i].Close()
		defer nodes[i].Close()
	}
	ctx := context.Background()
	var last int64

	client, err := quorum.New(nodes) // []redis.UniversalClient, one for each server
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	lock := fenced.NewLock(client, "account:42") // a *fenced.Lock, with all its methods and errors
	err = lock.Do(ctx, func(ctx context.Context, token int64) error {
		fmt.Println("a token:", token > 0)
		last = token
		return nil
	}, rlock.Wait(3*time.Second))
	if err != nil {
		fmt.Println(err)
	}

	servers[3].Close()
	servers[4].Close()
	err = lock.Do(ctx, func(ctx context.Context, token int64) error {
		fmt.Println("two servers are down, a larger token:", token > last)
		return nil
	}, rlock.Wait(3*time.Second))
	if err != nil {
		fmt.Println(err)
	}

	// Output:
	// a token: true
	// two servers are down, a larger token: true
}

// With a majority down there is no lock, and the error says which servers are missing.
func ExampleMajorityError() {
	nodes, servers := exampleNodes()
	for i := range nodes {
		defer servers[i].Close()
		defer nodes[i].Close()
	}
	for _, s := range servers[2:] {
		s.Close()
	}
	client, err := quorum.New(nodes, rlock.WithPatience(time.Second))
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	_, _, err = fenced.NewLock(client, "account:42").LockAndGetToken(context.Background())
	var missing *quorum.MajorityError
	if errors.As(err, &missing) {
		fmt.Println(missing.Need, "of", missing.Nodes, "servers are needed; three are missing at least:", len(missing.Failed) >= 3)
	}
	// Output: 3 of 5 servers are needed; three are missing at least: true
}
