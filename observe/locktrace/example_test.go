package locktrace_test

import (
	"context"
	"fmt"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/guard"
	"github.com/fencelock/fencelock/observe/locktrace"
	"github.com/fencelock/fencelock/rlock"
)

// A line for each hold that did not end by its holder's Unlock, and for each write that came too late.
func Example() {
	trace := &locktrace.Trace{
		HoldDone: func(e locktrace.HoldDone) {
			if e.End != locktrace.Unlocked {
				fmt.Printf("%s, token %d: %v\n", e.Lock, e.Token, e.End)
			}
		},
		WriteRefused: func(e locktrace.WriteRefused) {
			fmt.Printf("%s: a write with token %d came after token %d\n", e.Resource, e.Token, e.Seen)
		},
	}
	server, err := miniredis.Run() // in a service: a Redis
	if err != nil {
		panic(err)
	}
	defer server.Close()
	rdb := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer rdb.Close()
	client, err := rlock.New(rdb, rlock.WithTrace(trace))
	if err != nil {
		panic(err)
	}
	defer client.Close()
	marks := guard.NewMemory(guard.WithTrace(trace))

	ctx := context.Background()
	lock := fenced.NewLock(client, "account:42")
	_, first, err := lock.TryLockAndGetToken(ctx, 0, 0)
	if err != nil {
		panic(err)
	}
	if _, err := lock.ForceUnlock(ctx); err != nil { // somebody cleans up, while the holder goes on
		panic(err)
	}
	held, second, err := lock.TryLockAndGetToken(ctx, time.Second, 0)
	if err != nil {
		panic(err)
	}
	_ = marks.Check(ctx, "account:42", second)
	_ = marks.Check(ctx, "account:42", first)
	_ = lock.Unlock(held)
	// Output:
	// account:42, token 1: forced
	// account:42: a write with token 1 came after token 2
}
