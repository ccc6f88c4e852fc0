package held

import (
	"context"
	"errors"
	"log"
	"time"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/rlock"
)

// bad: the context with the hold is gone.
func bad(ctx context.Context, lock *rlock.Lock) error {
	_, err := lock.Lock(ctx) // want `the context that Lock returns is dropped: Unlock needs it`
	if err != nil {
		return err
	}
	defer lock.Unlock(ctx)
	return work(ctx)
}

// good keeps it, works under it and unlocks with it.
func good(ctx context.Context, lock *rlock.Lock) error {
	held, err := lock.Lock(ctx)
	if err != nil {
		return err
	}
	defer lock.Unlock(held)
	return work(held)
}

func asAMutex(ctx context.Context, lock *rlock.Lock) {
	lock.Lock(ctx) // want `the context that Lock returns is dropped`
	defer lock.Unlock(ctx)
}

func deferred(ctx context.Context, lock *rlock.Lock) {
	defer lock.Lock(ctx) // want `the context that Lock returns is dropped`
}

func tokenOnly(ctx context.Context, lock *fenced.Lock) (int64, error) {
	_, token, err := lock.TryLockAndGetToken(ctx, time.Second, 0) // want `the context that TryLockAndGetToken returns is dropped`
	if err != nil {
		return 0, err
	}
	return token, nil
}

func handsOn(ctx context.Context, lock *rlock.Lock) error {
	_, err := lock.Lock(context.WithoutCancel(ctx)) // want `the context that Lock returns is dropped`
	return err
}

func probe(ctx context.Context, lock *rlock.Lock) {
	if _, err := lock.TryLock(ctx, 0, 0); !errors.Is(err, rlock.ErrNotAcquired) {
		log.Fatal("somebody should have it")
	}
	if _, err := lock.TryLock(ctx, 0, 0); err == nil {
		log.Fatal("somebody should have it")
	}
	if _, err := lock.TryLock(ctx, 0, 0); err != nil {
		return
	}
	log.Fatal("somebody should have it")
}

// threads unlocks as Java does: the context carries a holder already.
func threads(ctx context.Context, lock *rlock.Lock) error {
	alice := rlock.NewHolder(ctx)
	_, err := lock.Lock(alice)
	if err != nil {
		return err
	}
	return lock.Unlock(alice)
}

// daily keeps others from doing it again for a day.
func daily(ctx context.Context, lock *rlock.Lock) error {
	if _, err := lock.TryLock(ctx, 0, 24*time.Hour); err != nil {
		return err
	}
	return work(ctx)
}

func leased(ctx context.Context, lock *rlock.Lock) error {
	_, err := lock.LockLease(ctx, time.Minute) // want `the context that LockLease returns is dropped`
	if err != nil {
		return err
	}
	defer lock.Unlock(ctx)
	return work(ctx)
}

func forced(ctx context.Context, lock *rlock.Lock) error {
	if _, err := lock.Lock(ctx); err != nil {
		return err
	}
	_, err := lock.ForceUnlock(ctx)
	return err
}

func onPurpose(ctx context.Context, lock *rlock.Lock) {
	_, _ = lock.Lock(ctx)
}

func work(context.Context) error { return nil }
