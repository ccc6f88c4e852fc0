package holder

import (
	"context"

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
