package held

import (
	"context"
	"errors"
	"log"
	"time"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/rlock"
)

func acquireAsAMutex(ctx context.Context, lock *rlock.Lock) {
	lock.Acquire(ctx) // want `the hold that Acquire returns is dropped: Unlock needs it`
}

func acquireDropped(ctx context.Context, lock *fenced.Lock) error {
	_, err := lock.Acquire(ctx, rlock.Wait(time.Second), rlock.Reenter(), rlock.Lasting("serves")) // want `the hold that Acquire returns is dropped`
	if err != nil {
		return err
	}
	return work(ctx)
}

func acquireProbe(ctx context.Context, lock *rlock.Lock) {
	if _, err := lock.Acquire(ctx, rlock.Wait(0)); !errors.Is(err, rlock.ErrNotAcquired) {
		log.Fatal("somebody should have it")
	}
}

// acquireForADay leaves the lock to its lease.
func acquireForADay(ctx context.Context, lock *rlock.Lock) error {
	_, err := lock.Acquire(ctx, rlock.Wait(0), rlock.Lease(24*time.Hour))
	return err
}

func acquireWithAnyOptions(ctx context.Context, lock *rlock.Lock, opts []rlock.AcquireOption) error {
	_, err := lock.Acquire(ctx, opts...)
	return err
}

// reentered is unlocked by the context of its Hold.
func reentered(ctx context.Context, lock *rlock.Lock) error {
	hold, err := lock.Acquire(ctx)
	if err != nil {
		return err
	}
	defer hold.Unlock(ctx)
	if _, err := lock.Lock(hold.Context()); err != nil {
		return err
	}
	return lock.Unlock(hold.Context())
}
