package holder

import (
	"context"

	"github.com/fencelock/fencelock/rlock"
)

// joins waits for its goroutine, which would wait for it with a holder of its own.
func joins(ctx context.Context, lock *rlock.Lock) error {
	held, err := lock.Lock(ctx)
	if err != nil {
		return err
	}
	defer lock.Unlock(held)
	done := make(chan struct{})
	go func() {
		defer close(done)
		inner, err := lock.Lock(held)
		if err != nil {
			return
		}
		defer lock.Unlock(inner)
		balance++
	}()
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

// acquires takes the lock for a new holder in the goroutine.
func acquires(ctx context.Context, lock *rlock.Lock) error {
	held, err := lock.Lock(ctx)
	if err != nil {
		return err
	}
	defer lock.Unlock(held)
	go func() {
		hold, err := lock.Acquire(held, rlock.Reenter())
		if err != nil {
			return
		}
		defer hold.Unlock(held)
		balance++
	}()
	balance++
	return nil
}

func work(context.Context) error { return nil }
