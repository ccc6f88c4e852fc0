package lockcertmagic_test

import (
	"context"
	"fmt"

	"github.com/alicebob/miniredis/v2"
	"github.com/caddyserver/certmagic"
	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/adapters/lockcertmagic"
	"github.com/fencelock/fencelock/rlock"
)

// A storage of files whose locks are in Redis.
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
	locker, err := lockcertmagic.New(client)
	if err != nil {
		panic(err)
	}
	storage := locker.Storage(&certmagic.FileStorage{Path: "/var/lib/certificates"}) // in a service: for certmagic.Default.Storage

	ctx := context.Background()
	if err := storage.Lock(ctx, "issue_cert_example.com"); err != nil { // as certmagic does it
		panic(err)
	}
	fmt.Println(server.Exists("certmagic:lock:issue_cert_example.com"))
	fmt.Println(storage.Unlock(ctx, "issue_cert_example.com"))
	// Output:
	// true
	// <nil>
}
