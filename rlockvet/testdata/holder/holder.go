package holder

import (
	"context"
	"sync"

	"github.com/fencelock/fencelock/rlock"
)

var balance int

// bad changes the balance twice at a time: the goroutine re-enters.
func bad(ctx context.Context, lock *rlock.Lock) error {
	held, err := lock.Lock(ctx)
	if err != nil {
		return err
	}
	defer lock.Unlock(held)
	go func() {
		inner, err := lock.Lock(held) // want `the goroutine has the same holder as the function that starts it, and does not wait for its lock: held carries it`
		if err != nil {
			return
		}
		defer lock.Unlock(inner)
		balance++
	}()
	balance++
	return nil
}

// good starts somebody else, who waits.
func good(ctx context.Context, lock *rlock.Lock) error {
	held, err := lock.Lock(ctx)
	if err != nil {
		return err
	}
	defer lock.Unlock(held)
	go func() {
		inner, err := lock.Lock(rlock.NewHolder(held))
		if err != nil {
			return
		}
		defer lock.Unlock(inner)
		balance++
	}()
	balance++
	return nil
}

func byName(ctx context.Context, client *rlock.Client) error {
	lock := rlock.NewLock(client, "account:42")
	held, err := lock.Lock(ctx)
	if err != nil {
		return err
	}
	defer lock.Unlock(held)
	var wg sync.WaitGroup
	wg.Go(func() {
		same := rlock.NewLock(client, "account:42")
		inner, err := same.Lock(held) // want `the goroutine has the same holder`
		if err != nil {
			return
		}
		defer same.Unlock(inner)
		balance++
	})
	balance++
	wg.Wait()
	return nil
}

// forks waits for its goroutines before it goes on; they exclude each other.
func forks(ctx context.Context, lock *rlock.Lock) error {
	held, err := lock.Lock(ctx)
	if err != nil {
		return err
	}
	defer lock.Unlock(held)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			inner, err := lock.Lock(held)
			if err != nil {
				return
			}
			defer lock.Unlock(inner)
			balance++
		})
	}
	wg.Wait()
	return nil
}

func crowds(ctx context.Context, lock *rlock.Lock) error {
	held, err := lock.Lock(ctx)
	if err != nil {
		return err
	}
	defer lock.Unlock(held)
	start, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		<-start
		inner, err := lock.Lock(held)
		if err != nil {
			return
		}
		defer lock.Unlock(inner)
		balance++
	}()
	for range 3 {
		go work(held)
	}
	close(start)
	<-done
	return nil
}

func others(ctx context.Context, lock, other *rlock.Lock) error {
	held, err := lock.Lock(ctx)
	if err != nil {
		return err
	}
	defer lock.Unlock(held)
	go func() {
		inner, err := other.Lock(held)
		if err != nil {
			return
		}
		defer other.Unlock(inner)
		balance++
	}()
	return work(held)
}

func outside(ctx context.Context, lock *rlock.Lock) error {
	held, err := lock.Lock(ctx)
	if err != nil {
		return err
	}
	defer lock.Unlock(held)
	go func() {
		inner, err := lock.Lock(ctx)
		if err != nil {
			return
		}
		defer lock.Unlock(inner)
		balance++
	}()
	return work(held)
}

func work(context.Context) error { return nil }
