package afterunlock

import (
	"context"
	"log/slog"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/rlock"
)

// bad has no living context after Unlock.
func bad(ctx context.Context, lock *rlock.Lock) error {
	ctx, err := lock.Lock(ctx)
	if err != nil {
		return err
	}
	save(ctx)
	if err := lock.Unlock(ctx); err != nil {
		return err
	}
	return notify(ctx) // want `ctx has ended with the Unlock before: keep the context from before Lock under another name, and use that`
}

// good keeps the context from before Lock for what comes after Unlock.
func good(ctx context.Context, lock *rlock.Lock) error {
	held, err := lock.Lock(ctx)
	if err != nil {
		return err
	}
	save(held)
	if err := lock.Unlock(held); err != nil {
		return err
	}
	return notify(ctx)
}

func twice(ctx context.Context, lock *rlock.Lock) (err error) {
	ctx, err = lock.Lock(ctx)
	if err != nil {
		return err
	}
	ctx, err = lock.Lock(ctx)
	if err != nil {
		return err
	}
	_ = lock.Unlock(ctx)
	_ = lock.Unlock(ctx) // want `ctx has ended with the Unlock before`
	return nil
}

func scoped(ctx context.Context, lock *rlock.Lock) error {
	{
		ctx, err := lock.Lock(ctx)
		if err != nil {
			return err
		}
		_ = lock.Unlock(ctx)
	}
	return notify(ctx)
}

func deferred(ctx context.Context, lock *rlock.Lock) error {
	ctx, err := lock.Lock(ctx)
	if err != nil {
		return err
	}
	defer lock.Unlock(ctx)
	return notify(ctx)
}

func early(ctx context.Context, lock *rlock.Lock, skip bool) error {
	ctx, err := lock.Lock(ctx)
	if err != nil {
		return err
	}
	if skip {
		return lock.Unlock(ctx)
	}
	defer lock.Unlock(ctx)
	return notify(ctx)
}

func logged(ctx context.Context, lock *rlock.Lock) {
	ctx, err := lock.Lock(ctx)
	if err != nil {
		return
	}
	_ = lock.Unlock(ctx)
	slog.InfoContext(ctx, "done", "cause", context.Cause(ctx))
	save(ctx)
	_ = notify(context.WithoutCancel(ctx))
}

func save(context.Context) {}

func notify(context.Context) error { return nil }

// two locks under one name: the context has both levels, and what needs no more than that works.
func two(ctx context.Context, lock *fenced.Lock, other *rlock.Lock) error {
	ctx, err := lock.Lock(ctx)
	if err != nil {
		return err
	}
	ctx, err = other.Lock(ctx)
	if err != nil {
		_ = lock.Unlock(ctx)
		return err
	}
	if err := other.Unlock(ctx); err != nil {
		return err
	}
	if err := lock.Check(ctx); err != nil {
		return err
	}
	if _, err := lock.Token(ctx); err != nil {
		return err
	}
	if _, err := lock.Remaining(ctx); err != nil {
		return err
	}
	return lock.Unlock(ctx)
}

// asked is two, but it asks Redis.
func asked(ctx context.Context, lock *fenced.Lock, other *rlock.Lock) (bool, error) {
	ctx, err := lock.Lock(ctx)
	if err != nil {
		return false, err
	}
	defer lock.Unlock(ctx)
	ctx, err = other.Lock(ctx)
	if err != nil {
		return false, err
	}
	if err := other.Unlock(ctx); err != nil {
		return false, err
	}
	return lock.IsHeld(ctx) // want `ctx has ended with the Unlock before`
}
