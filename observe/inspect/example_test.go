package inspect_test

import (
	"context"
	"fmt"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/observe/inspect"
	"github.com/fencelock/fencelock/rlock"
)

// Who has the lock, and for how long; then the hold that was seen is released, although its holder has not.
func Example() {
	server := miniredis.NewMiniRedis() // in a service: a Redis
	server.ClockTTL(true)
	if err := server.Start(); err != nil {
		panic(err)
	}
	defer server.Close()
	rdb := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer rdb.Close()
	client, err := rlock.New(rdb, rlock.WithPresence("billing")) // so that others see whose locks these are
	if err != nil {
		panic(err)
	}
	defer client.Close()
	ctx := context.Background()
	held, token, err := fenced.NewLock(client, "account:42").LockLeaseAndGetToken(ctx, time.Hour)
	if err != nil {
		panic(err)
	}

	in, err := inspect.New(rdb)
	if err != nil {
		panic(err)
	}
	locks, err := in.Look(ctx, "account:42", "account:43")
	if err != nil {
		panic(err)
	}
	for _, l := range locks {
		if l.Holder == nil {
			fmt.Println(l.Name, "is free")
			continue
		}
		fmt.Println(l.Name, "is held:", l.Holder.Client == client.ID(), l.Holder.Count, l.Token == token, l.TTL > 59*time.Minute)
	}

	freed, err := in.Free(ctx, locks[0])
	fmt.Println("freed:", freed, err)
	locked, err := fenced.NewLock(client, "account:42").IsLocked(ctx)
	fmt.Println("locked:", locked, err)
	_ = held // in the former holder's process it ends with rlock.ErrLost
	// Output:
	// account:42 is held: true 1 true true
	// account:43 is free
	// freed: true <nil>
	// locked: false <nil>
}

// Who has which permit of a semaphore, and how many wait for one.
func ExampleInspector_Slots() {
	server := miniredis.NewMiniRedis() // in a service: a Redis
	server.ClockTTL(true)
	if err := server.Start(); err != nil {
		panic(err)
	}
	defer server.Close()
	rdb := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer rdb.Close()
	client, err := rlock.New(rdb)
	if err != nil {
		panic(err)
	}
	defer client.Close()
	ctx := context.Background()
	permit, err := fenced.NewSemaphore(client, "jobs", 3).Acquire(ctx)
	if err != nil {
		panic(err)
	}
	defer permit.Unlock(ctx)

	in, err := inspect.New(rdb)
	if err != nil {
		panic(err)
	}
	jobs, err := in.Slots(ctx, "jobs", 3)
	if err != nil {
		panic(err)
	}
	fmt.Println(jobs.Taken, "of", len(jobs.Slots), "are taken, and", jobs.Waiting, "wait")
	for slot, l := range jobs.Slots {
		fmt.Println(slot, l.Name, l.Holder != nil, l.Token)
	}
	// Output:
	// 1 of 3 are taken, and 0 wait
	// 0 {jobs}:0 true 1
	// 1 {jobs}:1 false 0
	// 2 {jobs}:2 false 0
}
