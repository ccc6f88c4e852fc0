package holder

import (
	"context"

	"github.com/fencelock/fencelock/rlock"
)

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
