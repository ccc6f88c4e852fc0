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
	hold, err := lock.Acquire(context.Background(), rlock.Wait(3*time.Second))
	if errors.Is(err, rlock.ErrNotAcquired) {
		log.Fatal("somebody else had it for 3 s, nothing was done")
	} else if err != nil {
		log.Fatal(err)
	}
	fmt.Println("the lock is mine; my token is", hold.Token())
	// here: the work, with hold.Context(), which ends when the lock is lost
	if err := hold.Unlock(context.Background()); err != nil {
		log.Fatal(err) // rlock.ErrLost: somebody else may have had the lock meanwhile
	}
}
