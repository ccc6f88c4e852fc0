package earlyunlock

import (
	"context"
	"errors"
	"log"
	"time"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/rlock"
)

// bad unlocks what it has not got, where Lock fails.
func bad(ctx context.Context, lock *rlock.Lock) error {
	held, err := lock.Lock(ctx)
	defer lock.Unlock(held) // want `Unlock comes before err is looked at: after a failed Lock the context has nothing to unlock`
	if err != nil {
		return err
	}
	return work(held)
}

// good looks at the error first.
func good(ctx context.Context, lock *rlock.Lock) error {
	held, err := lock.Lock(ctx)
	if err != nil {
		return err
	}
	defer lock.Unlock(held)
	return work(held)
}

func joins(ctx context.Context, lock *rlock.Lock) (err error) {
	held, err := lock.TryLock(ctx, time.Second, 0)
	defer func() { err = errors.Join(err, lock.Unlock(held)) }() // want `Unlock comes before err is looked at`
	if err != nil {
		return err
	}
	return work(held)
}

func hold(ctx context.Context, lock *fenced.Lock) error {
	hold, err := lock.Acquire(ctx)
	defer hold.Unlock(ctx) // want `Unlock comes before err is looked at: after a failed Acquire hold is nil`
	if err != nil {
		return err
	}
	return work(hold.Context())
}

func permit(ctx context.Context, jobs *fenced.Semaphore) error {
	permit, err := jobs.TryAcquire(ctx, time.Second, 0)
	defer permit.Unlock(ctx) // want `Unlock comes before err is looked at: after a failed TryAcquire permit is nil`
	if err != nil {
		return err
	}
	return work(permit.Context())
}

func atOnce(ctx context.Context, lock *fenced.Lock) error {
	held, token, err := lock.LockAndGetToken(ctx)
	log.Println("token", token)
	_ = lock.Unlock(held) // want `Unlock comes before err is looked at`
	return err
}

func looksInside(ctx context.Context, lock *rlock.Lock) error {
	held, err := lock.Lock(ctx)
	defer func() {
		if err == nil {
			_ = lock.Unlock(held)
		}
	}()
	return err
}

func inInit(ctx context.Context, lock *rlock.Lock) error {
	if held, err := lock.Lock(ctx); err == nil {
		defer lock.Unlock(held)
		return work(held)
	}
	return nil
}

func under(ctx context.Context, lock *rlock.Lock) error {
	held, err := lock.Lock(ctx)
	if err == nil {
		return lock.Unlock(held)
	}
	return err
}

func switches(ctx context.Context, lock *rlock.Lock) error {
	held, err := lock.Lock(ctx)
	switch {
	case err != nil:
		return err
	default:
		return lock.Unlock(held)
	}
}

func checked(ctx context.Context, lock *rlock.Lock) {
	held, err := lock.Lock(ctx)
	must(err)
	defer lock.Unlock(held)
}

// later makes a function that runs when the error was looked at.
func later(ctx context.Context, lock *rlock.Lock) (func(), error) {
	held, err := lock.Lock(ctx)
	unlock := func() { _ = lock.Unlock(held) }
	if err != nil {
		return nil, err
	}
	return unlock, nil
}

// onPurpose does not look at all.
func onPurpose(ctx context.Context, lock *rlock.Lock) {
	held, _ := lock.Lock(ctx)
	defer lock.Unlock(held)
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func work(context.Context) error { return nil }
