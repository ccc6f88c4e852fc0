package redisguard_test

import (
	"context"
	"errors"
	"fmt"
	stdlog "log"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/guard"
	"github.com/fencelock/fencelock/guard/redisguard"
	"github.com/fencelock/fencelock/rlock"
)

// exampleServer is a Redis inside the process.
func exampleServer() *miniredis.Miniredis {
	server := miniredis.NewMiniRedis()
	server.ClockTTL(true)
	if err := server.Start(); err != nil {
		panic(err)
	}
	return server
}

// The lock gives a token, and the guard refuses an older one: of a holder that lost its lock and does not know.
func Example() {
	server := exampleServer()
	defer server.Close()
	ctx := context.Background()
	rdb := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer rdb.Close()
	client, err := rlock.New(rdb)
	if err != nil {
		stdlog.Fatal(err)
	}
	defer client.Close()

	g, err := redisguard.New(rdb) // one for the process
	if err != nil {
		stdlog.Fatal(err)
	}
	lock := fenced.NewLock(client, "account:42")
	err = lock.Do(ctx, func(ctx context.Context, token int64) error {
		w := g.Writer("account:42", token)
		balance, err := w.Do(ctx, "INCRBY", "balance:{account:42}", 10).Int64()
		fmt.Println("balance", balance)
		return err
	}, rlock.Wait(3*time.Second))
	fmt.Println(err)

	err = g.Writer("account:42", 7).Do(ctx, "INCRBY", "balance:{account:42}", 10).Err() // of a later holder
	fmt.Println(err)
	err = g.Writer("account:42", 1).Do(ctx, "INCRBY", "balance:{account:42}", 10).Err()
	fmt.Println(errors.Is(err, guard.ErrStale), err)
	// Output:
	// balance 10
	// <nil>
	// <nil>
	// true guard: stale fencing token of "account:42": 1 was shown, and 7 has been seen
}

// A script of one's own: it checks first and writes then.
func ExampleWriter_Eval() {
	server := exampleServer()
	defer server.Close()
	ctx := context.Background()
	rdb := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer rdb.Close()
	g, err := redisguard.New(rdb)
	if err != nil {
		stdlog.Fatal(err)
	}

	const withdraw = `
		local balance = tonumber(redis.call('GET', KEYS[1]) or 0)
		if balance < tonumber(ARGV[1]) then return redis.error_reply('POOR only ' .. balance) end
		return redis.call('DECRBY', KEYS[1], ARGV[1])`
	w := g.Writer("account:42", 33)
	fmt.Println(w.Do(ctx, "SET", "balance:{account:42}", 100).Text())
	fmt.Println(w.Eval(ctx, withdraw, []string{"balance:{account:42}"}, 70).Int64())
	fmt.Println(w.Eval(ctx, withdraw, []string{"balance:{account:42}"}, 70).Err())
	// Output:
	// OK <nil>
	// 30 <nil>
	// redisguard: eval of "account:42": POOR only 30
}

// A write that may be repeated after its reply was lost: the id says what is done.
func ExampleWriter_Once() {
	server := exampleServer()
	defer server.Close()
	ctx := context.Background()
	rdb := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer rdb.Close()
	g, err := redisguard.New(rdb)
	if err != nil {
		stdlog.Fatal(err)
	}

	w := g.Writer("account:42", 33).Once("transfer:9041")
	for range 3 { // as long as errors.Is(err, redisguard.ErrUnknown)
		fmt.Println(w.Do(ctx, "INCRBY", "balance:{account:42}", 10).Int64())
	}
	// Output:
	// 10 <nil>
	// 10 <nil>
	// 10 <nil>
}
