package lostunlock

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/rlock"
)

func acquireNever(ctx context.Context, lock *fenced.Lock) error {
	hold, err := lock.Acquire(ctx) // want `the lock is not unlocked: hold.Unlock is never called`
	if err != nil {
		return err
	}
	if hold.Token() < 7 {
		return work(hold.Context())
	}
	return work(ctx)
}

func acquireReturns(ctx context.Context, lock *rlock.Lock) error {
	hold, err := lock.Acquire(ctx) // want `the lock is not unlocked on all paths: the return on line 30 is reached without hold.Unlock`
	if err != nil {
		return err
	}
	if err := work(hold.Context()); err != nil {
		return err
	}
	return hold.Unlock(ctx)
}

func acquireInALoop(ctx context.Context, lock *rlock.Lock) {
	for {
		hold, err := lock.Acquire(ctx) // want `the loop takes it again without hold.Unlock`
		if err != nil {
			return
		}
		if work(hold.Context()) == nil {
			_ = hold.Unlock(ctx)
			return
		}
	}
}

func acquireBesideAnother(ctx context.Context, a, b *rlock.Lock) error {
	first, err := a.Acquire(ctx) // want `first.Unlock is never called`
	if err != nil {
		return err
	}
	second, err := b.Acquire(ctx)
	if err != nil {
		return err
	}
	defer second.Unlock(ctx)
	return first.Err()
}

func acquireRight(ctx context.Context, lock *rlock.Lock) (err error) {
	hold, err := lock.Acquire(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, hold.Unlock(ctx)) }()
	return work(hold.Context())
}

func acquireUntilItEnds(ctx context.Context, lock *rlock.Lock) error {
	hold, err := lock.Acquire(ctx)
	if err != nil {
		return err
	}
	if err := hold.Err(); err != nil {
		return err
	}
	select {
	case <-hold.Done():
		return hold.Err()
	case <-hold.Waited():
		return hold.Unlock(ctx)
	}
}

func acquireUnlockedByItsContext(ctx context.Context, lock *rlock.Lock) error {
	hold, err := lock.Acquire(ctx)
	if err != nil {
		return err
	}
	held, cancel := context.WithTimeout(hold.Context(), time.Second)
	defer cancel()
	defer lock.Unlock(held)
	return work(held)
}

func acquireAndUnlockByContext(ctx context.Context, lock *rlock.Lock) error {
	hold, err := lock.Acquire(ctx)
	if err != nil {
		return err
	}
	return lock.Unlock(hold.Context())
}

func acquireCleansUp(ctx context.Context, lock *rlock.Lock, cleanup func(func())) {
	hold, err := lock.Acquire(ctx)
	if err != nil {
		return
	}
	cleanup(func() { _ = hold.Unlock(context.Background()) })
}

func acquireReturnsItsUnlock(ctx context.Context, lock *rlock.Lock) (func(context.Context) error, error) {
	hold, err := lock.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	return hold.Unlock, nil
}

func acquireHandsOn(ctx context.Context, lock *rlock.Lock, r *http.Request, next http.Handler) {
	hold, err := lock.Acquire(ctx)
	if err != nil {
		return
	}
	next.ServeHTTP(nil, r.WithContext(hold.Context()))
}

func acquireWithALease(ctx context.Context, lock *rlock.Lock) error {
	hold, err := lock.Acquire(ctx, rlock.Lease(24*time.Hour))
	if err != nil {
		return err
	}
	return work(hold.Context())
}
