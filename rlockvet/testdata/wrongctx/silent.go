package wrongctx

import (
	"context"

	"github.com/fencelock/fencelock/rlock"
)

// levels unlocks both: outer is the context of the first.
func levels(ctx context.Context, lock *rlock.Lock) error {
	outer, err := lock.Lock(ctx)
	if err != nil {
		return err
	}
	inner, err := lock.Lock(outer)
	if err != nil {
		return err
	}
	_ = work(inner)
	_ = lock.Unlock(inner)
	return lock.Unlock(outer)
}

// callers ends the hold of its caller too.
func callers(ctx context.Context, lock *rlock.Lock) error {
	held, err := lock.Lock(ctx)
	if err != nil {
		return err
	}
	_ = lock.Unlock(held)
	return lock.Unlock(ctx)
}

// carries gives Unlock a context that carries a holder: it releases that holder's newest level.
func carries(ctx context.Context, lock, other *rlock.Lock) error {
	outer, err := other.Lock(ctx)
	if err != nil {
		return err
	}
	defer other.Unlock(outer)
	held, err := lock.Lock(outer)
	if err != nil {
		return err
	}
	defer lock.Unlock(outer)
	return work(held)
}

func renamed(ctx context.Context, lock *rlock.Lock) error {
	held, err := lock.Lock(ctx)
	if err != nil {
		return err
	}
	ctx = held
	defer lock.Unlock(ctx)
	return work(ctx)
}

func another(ctx context.Context, lock, other *rlock.Lock) error {
	held, err := lock.Lock(ctx)
	if err != nil {
		return err
	}
	_ = work(held)
	_ = lock.Unlock(held)
	return other.Unlock(ctx)
}

func work(context.Context) error { return nil }
