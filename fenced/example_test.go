package fenced_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/rlock"
)

// exampleServer starts a Redis inside the process, and returns its address and what stops it.
func exampleServer() (addr string, done func()) {
	server := miniredis.NewMiniRedis()
	server.ClockTTL(true) // leases run out by the clock
	if err := server.Start(); err != nil {
		panic(err)
	}
	return server.Addr(), server.Close
}

// exampleClient returns a client on such a Redis, and what closes both.
func exampleClient() (client *rlock.Client, done func()) {
	addr, stop := exampleServer()
	rdb := redis.NewClient(&redis.Options{Addr: addr})
	client, err := rlock.New(rdb)
	if err != nil {
		panic(err)
	}
	return client, func() {
		_ = client.Close()
		_ = rdb.Close()
		stop()
	}
}

var errStale = errors.New("stale token")

// An exampleAccount is storage that checks tokens: it remembers the largest one it was shown and refuses a smaller one.
// In a database it is a row, and the check is part of the UPDATE's WHERE.
type exampleAccount struct{ balance, token int64 }

func (a *exampleAccount) Read(token int64) (int64, error) {
	if token < a.token {
		return 0, fmt.Errorf("%w: %d was shown after %d", errStale, token, a.token)
	}
	a.token = token
	return a.balance, nil
}

func (a *exampleAccount) Write(token, balance int64) error {
	if _, err := a.Read(token); err != nil {
		return err
	}
	a.balance = balance
	return nil
}

// A client for the process, a lock for a name, and work under it. The wait is 3 s at most; lease 0 means that the lock is
// kept until the function returns.
func Example() {
	addr, done := exampleServer()
	defer done()
	ctx := context.Background()
	account := &exampleAccount{balance: 100}

	rdb := redis.NewClient(&redis.Options{Addr: addr}) // yours; a cluster or failover client will do as well
	defer rdb.Close()
	client, err := rlock.New(rdb) // one for the process
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	lock := fenced.NewLock(client, "account:42")
	hold, err := lock.Acquire(ctx, rlock.Wait(3*time.Second))
	if err != nil {
		log.Fatal(err) // rlock.ErrNotAcquired: somebody else had it for 3 s
	}
	balance, err := account.Read(hold.Token())
	if err != nil {
		log.Fatal(err)
	}
	if err := account.Write(hold.Token(), balance+10); err != nil {
		log.Fatal(err)
	}
	fmt.Println("balance", account.balance, "written with token", account.token)
	if err := hold.Unlock(ctx); err != nil {
		log.Fatal(err) // rlock.ErrLost: somebody else may have had the lock meanwhile
	}

	// Output:
	// balance 110 written with token 1
}

// One hold of two accounts: neither is anybody else's, and each write shows the token of its account.
func ExampleAcquireAll() {
	client, done := exampleClient()
	defer done()
	from, to := fenced.NewLock(client, "account:1"), fenced.NewLock(client, "account:2")

	hold, err := fenced.AcquireAll(context.Background(), []*fenced.Lock{from, to}, rlock.Wait(3*time.Second))
	if err != nil {
		log.Fatal(err) // rlock.ErrNotAcquired: it says which one somebody else had
	}
	for _, one := range hold.Each() {
		fmt.Println(one.Name(), "with token", one.Token())
	}
	fmt.Println(hold.Unlock(context.Background()))

	// Output:
	// account:1 with token 1
	// account:2 with token 1
	// <nil>
}

// Work that hangs loses its lock after its time, although its process lives.
func ExampleLock_Do_maxHold() {
	client, done := exampleClient()
	defer done()

	err := fenced.NewLock(client, "report:daily").Do(context.Background(), func(ctx context.Context, token int64) error {
		<-ctx.Done() // a query that never returns, but heeds its context
		return context.Cause(ctx)
	}, rlock.MaxHold(50*time.Millisecond))
	fmt.Println(errors.Is(err, rlock.ErrMaxHold), errors.Is(err, rlock.ErrLost))

	// Output:
	// true true
}

// A long job gives the lock up as soon as somebody waits for it, and extends the lease before a step that must not be cut short.
func ExampleLock_Acquire() {
	client, done := exampleClient()
	defer done()
	lock := fenced.NewLock(client, "index:rebuild")

	hold, err := lock.Acquire(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	go func() {
		other, err := lock.Acquire(context.Background()) // somebody waits
		if err == nil {
			_ = other.Unlock(context.Background())
		}
	}()
	for working := true; working; {
		select {
		case <-hold.Done():
			log.Fatal(hold.Err()) // rlock.ErrLost
		case <-hold.Waited():
			working = false
		}
	}
	if err := hold.Extend(context.Background(), 2*time.Minute); err != nil { // for what is to be written at the end
		log.Fatal(err)
	}
	fmt.Println("good for two minutes:", hold.Remaining() > time.Minute)
	fmt.Println(hold.Unlock(context.Background()))

	// Output:
	// good for two minutes: true
	// <nil>
}

// A job that runs on every node, and does its work on one of them. ErrNotAcquired means that it is another's turn.
func ExampleLock_Do_once() {
	client, done := exampleClient()
	defer done()
	lock := fenced.NewLock(client, "report:daily")

	report := func(ctx context.Context, token int64) error {
		fmt.Println("the report is written with token", token)
		return nil
	}
	for range 2 { // twice in a row, not at the same time: both get their turn
		err := lock.Do(context.Background(), report, rlock.Wait(0)) // one try, and the watchdog's lease
		if errors.Is(err, rlock.ErrNotAcquired) {
			fmt.Println("another node is at it")
		}
	}

	// Output:
	// the report is written with token 1
	// the report is written with token 2
}

// The shape of Redisson's
//
//	Long token = lock.tryLockAndGetToken(3, 10, TimeUnit.SECONDS);
//	if (token == null) return;
//	try { ... } finally { lock.unlock(); }
func ExampleLock_TryLockAndGetToken() {
	client, done := exampleClient()
	defer done()
	lock := fenced.NewLock(client, "account:42")

	withdraw := func(ctx context.Context) (err error) {
		held, token, err := lock.TryLockAndGetToken(ctx, 3*time.Second, 10*time.Second) // wait, lease
		if errors.Is(err, rlock.ErrNotAcquired) {
			return nil // somebody else held it for the whole wait
		}
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, lock.Unlock(held)) }()

		fmt.Println("token", token)
		return nil
	}
	fmt.Println(withdraw(context.Background()))

	// Output:
	// token 1
	// <nil>
}

// A holder is paused, its lease runs out, another one works, and the first one's late write is refused. It then does
// its work again, from the read on, under a new token.
func Example_pausedHolder() {
	client, done := exampleClient()
	defer done()
	ctx := context.Background()
	lock := fenced.NewLock(client, "account:42")
	account := &exampleAccount{balance: 100}

	held, old, err := lock.LockLeaseAndGetToken(ctx, time.Second) // which nobody renews
	if err != nil {
		fmt.Println(err)
		return
	}
	balance, _ := account.Read(old)
	<-held.Done() // stands for a pause that the program does not notice

	deposit := func(_ context.Context, token int64) error {
		balance, err := account.Read(token)
		if err != nil {
			return err
		}
		return account.Write(token, balance+10)
	}
	fmt.Println("another:", lock.Do(ctx, deposit))

	err = account.Write(old, balance+10)
	fmt.Println("late:", err)
	fmt.Println("unlock: lost is", errors.Is(lock.Unlock(held), rlock.ErrLost))
	fmt.Println("again:", lock.Do(ctx, deposit))
	fmt.Println("balance", account.balance)

	// Output:
	// another: <nil>
	// late: stale token: 1 was shown after 2
	// unlock: lost is true
	// again: <nil>
	// balance 120
}

// Code deep down needs the token and has only its context.
func ExampleTokenFrom() {
	client, done := exampleClient()
	defer done()
	lock := fenced.NewLock(client, "account:42")

	save := func(ctx context.Context) error {
		token, ok := fenced.TokenFrom(ctx, "account:42")
		if !ok {
			return errors.New("save is called with account:42 locked")
		}
		fmt.Println("save with token", token)
		return nil
	}
	ctx := context.Background()
	err := lock.Do(ctx, func(ctx context.Context, _ int64) error {
		return save(ctx)
	})
	fmt.Println(err)
	fmt.Println(save(ctx))

	// Output:
	// save with token 1
	// <nil>
	// save is called with account:42 locked
}

// A re-entry takes a new token, as in Redisson. What the outer function writes afterwards must show the current one.
func ExampleLock_Token() {
	client, done := exampleClient()
	defer done()
	lock := fenced.NewLock(client, "account:42")

	err := lock.Do(context.Background(), func(ctx context.Context, first int64) error {
		inner := func(_ context.Context, token int64) error {
			fmt.Println("inner", token)
			return nil
		}
		if err := lock.Do(ctx, inner); err != nil {
			return err
		}
		current, err := lock.Token(ctx)
		fmt.Println("outer", first, "then", current)
		return err
	})
	fmt.Println(err)

	// Output:
	// inner 2
	// outer 1 then 2
	// <nil>
}

// With a stable token the whole hold has one, which may be kept in a variable across nested calls.
func ExampleWithStableToken() {
	client, done := exampleClient()
	defer done()
	lock := fenced.NewLock(client, "account:42", fenced.WithStableToken())

	for range 2 {
		err := lock.Do(context.Background(), func(ctx context.Context, outer int64) error {
			return lock.Do(ctx, func(_ context.Context, inner int64) error {
				fmt.Println("outer", outer, "inner", inner)
				return nil
			})
		})
		if err != nil {
			fmt.Println(err)
		}
	}

	// Output:
	// outer 1 inner 1
	// outer 2 inner 2
}

// A service that writes on behalf of the holder gets the token with the request.
func ExampleContextWithToken() {
	received := int64(33) // from a header
	ctx := fenced.ContextWithToken(context.Background(), "account:42", received)

	fmt.Println(fenced.TokenFrom(ctx, "account:42"))
	fmt.Println(fenced.TokenFrom(ctx, "account:43"))

	// Output:
	// 33 true
	// 0 false
}

// Many read at the same time, with one token. Who writes is alone, and has a larger one.
func ExampleRWLock() {
	client, done := exampleClient()
	defer done()
	page := fenced.NewRWLock(client, "page")
	ctx := context.Background()

	a, err := page.Read().Acquire(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	b, err := page.Read().Acquire(ctx)
	if err != nil {
		fmt.Println(err, a.Unlock(ctx))
		return
	}
	_, err = page.Write().Acquire(ctx, rlock.Wait(0))
	fmt.Println(a.Token(), b.Token(), errors.Is(err, rlock.ErrNotAcquired))
	if err := errors.Join(a.Unlock(ctx), b.Unlock(ctx)); err != nil {
		fmt.Println(err)
	}
	err = page.Write().Do(ctx, func(ctx context.Context, token int64) error {
		fmt.Println(token)
		return nil
	})
	if err != nil {
		fmt.Println(err)
	}

	// Output:
	// 1 1 true
	// 2
}

// Two of three workers have a permit, each with a slot of its own. A slot that is given to somebody else has a larger token.
func ExampleSemaphore() {
	client, done := exampleClient()
	defer done()
	jobs := fenced.NewSemaphore(client, "jobs", 2)
	ctx := context.Background()

	a, err := jobs.Acquire(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	b, err := jobs.Acquire(ctx)
	if err != nil {
		fmt.Println(err, a.Unlock(ctx))
		return
	}
	defer b.Unlock(ctx)
	_, err = jobs.Acquire(ctx, rlock.Wait(0))
	fmt.Println(a.Slot(), b.Slot(), errors.Is(err, rlock.ErrNotAcquired))

	if err := a.Unlock(ctx); err != nil {
		fmt.Println(err)
	}
	c, err := jobs.Acquire(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Unlock(ctx)
	fmt.Println(c.Name(), c.Token())

	// Output:
	// 0 1 true
	// {jobs}:0 2
}
