package rlock_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/rlock"
)

// exampleRedis returns a client of a Redis inside the process, and what closes it.
func exampleRedis() (rdb *redis.Client, done func()) {
	server := miniredis.NewMiniRedis()
	server.ClockTTL(true) // leases run out by the clock
	if err := server.Start(); err != nil {
		panic(err)
	}
	rdb = redis.NewClient(&redis.Options{Addr: server.Addr()})
	return rdb, func() {
		_ = rdb.Close()
		server.Close()
	}
}

// exampleClient returns a client on such a Redis, and what closes both.
func exampleClient() (client *rlock.Client, done func()) {
	rdb, closeRedis := exampleRedis()
	client, err := rlock.New(rdb)
	if err != nil {
		panic(err)
	}
	return client, func() {
		_ = client.Close()
		closeRedis()
	}
}

// One client for a process; its locks are names.
func ExampleNew() {
	rdb, done := exampleRedis() // or redis.NewClient(&redis.Options{Addr: "localhost:6379"})
	defer done()

	client, err := rlock.New(rdb,
		rlock.WithLease(15*time.Second),              // others get in sooner after a crash
		rlock.WithLogger(slog.With("part", "locks"))) // tell of holds that were lost or dropped as this one does
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()

	lock := rlock.NewLock(client, "report:daily")
	fmt.Println(lock.IsLocked(context.Background()))

	// Output:
	// false <nil>
}

// A proxy that speaks RESP2 alone, or hangs up at commands that it does not know, gets as few of those as go-redis can do with.
func ExampleNew_proxy() {
	rdb := redis.NewClient(&redis.Options{
		Addr:            "redis.example:6380",
		TLSConfig:       &tls.Config{MinVersion: tls.VersionTLS12},
		Protocol:        2,    // HELLO 2, no CLIENT MAINT_NOTIFICATIONS
		DisableIdentity: true, // no CLIENT SETINFO
	})
	client, err := rlock.New(rdb)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
}

// The shape of
//
//	lock.lock();
//	try { ... } finally { lock.unlock(); }
//
// The context that Lock returns replaces ctx: it carries the holder, and it ends when the lock is lost.
func ExampleLock_Lock() {
	client, done := exampleClient()
	defer done()
	lock := rlock.NewLock(client, "order:7")

	ship := func(ctx context.Context) (err error) {
		held, err := lock.Lock(ctx)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, lock.Unlock(held)) }()

		fmt.Println("ship the order")
		return held.Err()
	}
	fmt.Println(ship(context.Background()))

	// Output:
	// ship the order
	// <nil>
}

// Do is Lock, fn, Unlock, and the error tells all three.
func ExampleLock_Do() {
	client, done := exampleClient()
	defer done()
	lock := rlock.NewLock(client, "order:7")

	err := lock.Do(context.Background(), func(ctx context.Context) error {
		fmt.Println("ship the order")
		return nil
	})
	fmt.Println(err)

	// Output:
	// ship the order
	// <nil>
}

// The shape of
//
//	if (lock.tryLock(1, 10, TimeUnit.SECONDS)) {
//	    try { ... } finally { lock.unlock(); }
//	}
func ExampleLock_TryLock() {
	client, done := exampleClient()
	defer done()
	ctx := context.Background()
	lock := rlock.NewLock(client, "order:7")

	held, err := lock.TryLock(ctx, time.Second, 10*time.Second) // wait, lease
	if err != nil {
		fmt.Println(err)
		return
	}
	defer lock.Unlock(held)

	// ctx carries no holder: this is somebody else.
	_, err = lock.TryLock(ctx, time.Second, 10*time.Second)
	fmt.Println(errors.Is(err, rlock.ErrNotAcquired))
	fmt.Println(err)

	// Output:
	// true
	// rlock: TryLock "order:7": not acquired: held by someone else
}

// A job that runs on every node, and does its work on one of them. ErrNotAcquired means that it is another's turn.
func ExampleLock_Do_once() {
	rdb, done := exampleRedis()
	defer done()
	ctx := context.Background()

	job := func(node string, lock *rlock.Lock, work func(context.Context) error) {
		switch err := lock.Do(ctx, work, rlock.Wait(0)); { // no wait, and the watchdog's lease
		case errors.Is(err, rlock.ErrNotAcquired):
			fmt.Println(node, "skips: another node does it")
		case err != nil:
			fmt.Println(node, err)
		default:
			fmt.Println(node, "has done it")
		}
	}

	node1, err := rlock.New(rdb) // in a process of its own
	if err != nil {
		fmt.Println(err)
		return
	}
	defer node1.Close()
	node2, err := rlock.New(rdb) // in another one
	if err != nil {
		fmt.Println(err)
		return
	}
	defer node2.Close()

	job("node 1", rlock.NewLock(node1, "report:daily"), func(context.Context) error {
		// Meanwhile the clock strikes on node 2 as well.
		job("node 2", rlock.NewLock(node2, "report:daily"), func(context.Context) error { return nil })
		return nil
	})

	// Output:
	// node 2 skips: another node does it
	// node 1 has done it
}

// A service method that locks calls another one that locks the same: the context says that it is the same caller.
func Example_nestedCalls() {
	client, done := exampleClient()
	defer done()
	lock := rlock.NewLock(client, "order:7")

	pay := func(ctx context.Context) error {
		return lock.Do(ctx, func(ctx context.Context) error {
			count, err := lock.HoldCount(ctx)
			fmt.Println("pay, hold count", count)
			return err
		})
	}
	checkout := func(ctx context.Context) error {
		return lock.Do(ctx, func(ctx context.Context) error {
			if err := pay(ctx); err != nil { // with the ctx of Do: re-enters
				return err
			}
			count, err := lock.HoldCount(ctx)
			fmt.Println("checkout, hold count", count)
			return err
		})
	}
	fmt.Println(checkout(context.Background()))

	// Output:
	// pay, hold count 2
	// checkout, hold count 1
	// <nil>
}

// A goroutine that is to wait for its parent's lock, as a new thread in Java would, needs a holder of its own.
func ExampleNewHolder() {
	client, done := exampleClient()
	defer done()
	lock := rlock.NewLock(client, "order:7")

	finished := make(chan error)
	err := lock.Do(context.Background(), func(ctx context.Context) error {
		go func() {
			finished <- lock.Do(rlock.NewHolder(ctx), func(context.Context) error {
				fmt.Println("goroutine")
				return nil
			})
		}()
		time.Sleep(20 * time.Millisecond)
		fmt.Println("parent")
		return nil
	})
	fmt.Println(err, <-finished)

	// Output:
	// parent
	// goroutine
	// <nil> <nil>
}

// The context of a hold ends when the lock is lost. Here the lease is explicit, and the work takes longer.
func Example_lost() {
	client, done := exampleClient()
	defer done()
	lock := rlock.NewLock(client, "order:7")

	held, err := lock.LockLease(context.Background(), time.Second)
	if err != nil {
		fmt.Println(err)
		return
	}
	select {
	case <-held.Done():
		fmt.Println(context.Cause(held))
		fmt.Println(errors.Is(held.Err(), rlock.ErrLost))
	case <-time.After(10 * time.Second):
		fmt.Println("the work is done")
	}
	fmt.Println(lock.Unlock(held))

	// Output:
	// rlock: "order:7": lock lost: the lease ran out
	// true
	// rlock: Unlock "order:7": lock lost: the lease ran out
}

// Do does not hide a loss: although fn succeeded, somebody else may have been at work at the same time.
func ExampleLock_Do_lost() {
	client, done := exampleClient()
	defer done()
	lock := rlock.NewLock(client, "order:7")

	err := lock.Do(context.Background(), func(ctx context.Context) error {
		_, err := lock.ForceUnlock(ctx) // by an operator
		return err
	})
	fmt.Println(errors.Is(err, rlock.ErrLost))

	// Output:
	// true
}

// Check asks the clocks, not Redis. It also tells the truth where context.WithoutCancel has hidden the loss.
func ExampleLock_Check() {
	client, done := exampleClient()
	defer done()
	ctx := context.Background()
	lock := rlock.NewLock(client, "order:7")

	held, err := lock.Lock(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	detached := context.WithoutCancel(held)
	fmt.Println(lock.Check(detached))
	if err := lock.Unlock(held); err != nil {
		fmt.Println(err)
	}
	fmt.Println(detached.Err(), errors.Is(lock.Check(detached), rlock.ErrUnlocked))
	fmt.Println(lock.Check(ctx))

	// Output:
	// <nil>
	// <nil> true
	// rlock: Check "order:7": not held: no holder in ctx, pass the context that Lock returned
}

// Shutdown lets the work in hand finish, and takes no new one.
func ExampleClient_Shutdown() {
	client, done := exampleClient()
	defer done()
	ctx := context.Background()
	lock := rlock.NewLock(client, "order:7")

	held, err := lock.Lock(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	go func() {
		time.Sleep(20 * time.Millisecond)
		fmt.Println("work done")
		_ = lock.Unlock(held)
	}()
	bound, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	fmt.Println("shutdown:", client.Shutdown(bound))
	_, err = lock.Lock(ctx)
	fmt.Println(errors.Is(err, rlock.ErrClosed))

	// Output:
	// work done
	// shutdown: <nil>
	// true
}
