package wrongctx

import (
	"context"
	"time"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/rlock"
)

// bad unlocks with the context that holds nothing.
func bad(ctx context.Context, lock *rlock.Lock) error {
	held, err := lock.Lock(ctx)
	if err != nil {
		return err
	}
	defer lock.Unlock(ctx) // want `Unlock with ctx, which was given to Lock: pass the context that it returned, held`
	return work(held)
}

// good unlocks with the one that Lock returned.
func good(ctx context.Context, lock *rlock.Lock) error {
	held, err := lock.Lock(ctx)
	if err != nil {
		return err
	}
	defer lock.Unlock(held)
	return work(held)
}

type service struct{ lock *fenced.Lock }

func (s *service) bounded(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	held, _, err := s.lock.LockAndGetToken(ctx)
	if err != nil {
		return err
	}
	defer func() {
		_ = s.lock.Unlock(ctx) // want `Unlock with ctx, which was given to LockAndGetToken`
	}()
	return work(held)
}

func acquired(ctx context.Context, lock *rlock.Lock) error {
	hold, err := lock.Acquire(ctx)
	if err != nil {
		return err
	}
	defer lock.Unlock(ctx) // want `Unlock with ctx, which was given to Acquire: call the Unlock of what it returned, hold`
	return work(hold.Context())
}
