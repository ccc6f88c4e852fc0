package deferloop

import (
	"context"

	"github.com/fencelock/fencelock/rlock"
)

func acquires(ctx context.Context, lock *rlock.Lock, jobs []string) error {
	for _, job := range jobs {
		hold, err := lock.Acquire(ctx)
		if err != nil {
			return err
		}
		defer hold.Unlock(ctx) // want `the next round waits for this hold`
		if err := work(hold.Context(), job); err != nil {
			return err
		}
	}
	return nil
}

func acquiresRight(ctx context.Context, lock *rlock.Lock, jobs []string) error {
	for _, job := range jobs {
		hold, err := lock.Acquire(ctx)
		if err != nil {
			return err
		}
		err = work(hold.Context(), job)
		if err := hold.Unlock(ctx); err != nil {
			return err
		}
		if err != nil {
			return err
		}
	}
	return nil
}
