package locktusd_test

import (
	"context"
	"fmt"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/tus/tusd/v2/pkg/handler"

	"github.com/fencelock/fencelock/adapters/locktusd"
	"github.com/fencelock/fencelock/rlock"
)

// The second request for an upload makes the first one end, as tusd does it with the lock of its composer.
func Example() {
	server, err := miniredis.Run() // in a service: a Redis
	if err != nil {
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
	locker, err := locktusd.New(client)
	if err != nil {
		panic(err)
	}
	composer := handler.NewStoreComposer()
	locker.UseIn(composer)

	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	first, err := composer.Locker.NewLock("upload")
	if err != nil {
		panic(err)
	}
	err = first.Lock(ctx, func() {
		fmt.Println("the first request is to end")
		_ = first.Unlock()
	})
	if err != nil {
		panic(err)
	}
	second, err := composer.Locker.NewLock("upload")
	if err != nil {
		panic(err)
	}
	if err := second.Lock(ctx, func() {}); err != nil {
		panic(err)
	}
	fmt.Println("the second request has the lock")
	fmt.Println(second.Unlock())
	// Output:
	// the first request is to end
	// the second request has the lock
	// <nil>
}
