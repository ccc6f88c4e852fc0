package wrongctx

import (
	"context"

	"github.com/fencelock/fencelock/rlock"
)

func acquired(ctx context.Context, lock *rlock.Lock) error {
	hold, err := lock.Acquire(ctx)
	if err != nil {
		return err
	}
	defer lock.Unlock(ctx) // want `Unlock with ctx, which was given to Acquire: call the Unlock of what it returned, hold`
	return work(hold.Context())
}

func acquiredRight(ctx context.Context, lock *rlock.Lock) error {
	hold, err := lock.Acquire(ctx)
	if err != nil {
		return err
	}
	defer hold.Unlock(ctx)
	return work(hold.Context())
}
