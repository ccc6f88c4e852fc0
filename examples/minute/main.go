package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/rlock"
)

func main() {
	rdb := redis.NewClient(&redis.Options{Addr: "localhost:6379"}) // yours; a cluster or failover client will do as well
	defer rdb.Close()
	client, err := rlock.New(rdb) // one for the process
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	lock := fenced.NewLock(client, "lock:account:42")
	err = lock.TryDo(context.Background(), 3*time.Second, 0, func(ctx context.Context, token int64) error { // wait, lease
		fmt.Println("the lock is mine; my token is", token)
		return ctx.Err() // here: the work, with ctx
	})
	switch {
	case errors.Is(err, rlock.ErrNotAcquired):
		fmt.Println("somebody else had it for 3 s, nothing was done")
	case err != nil:
		fmt.Println(err)
	}
}
