// Command minute takes a lock, and prints its token: the program around the first lines of Go in the README.
package main

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/rlock"
)

func main() {
	rdb := redis.NewClient(&redis.Options{Addr: "localhost:6379"}) // a cluster or failover client will do as well
	defer rdb.Close()
	if err := run(context.Background(), rdb); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, rdb redis.UniversalClient) error {
	client, err := rlock.New(rdb) // on your go-redis client; one for the whole process
	if err != nil {
		return err
	}
	defer client.Close()

	lock := fenced.NewLock(client, "lock:account:42")
	return lock.Do(ctx, func(ctx context.Context, token int64) error {
		fmt.Println("the lock is mine; my token is", token)
		return nil // here: the work. Its ctx ends when the lock is lost
	}, rlock.Wait(3*time.Second))
}
