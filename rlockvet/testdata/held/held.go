package held

import (
	"context"
	"errors"
	"log"
	"time"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/leader"
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

func leased(ctx context.Context, lock *rlock.Lock) error {
	_, err := lock.LockLease(ctx, time.Minute) // want `the context that LockLease returns is dropped`
	if err != nil {
		return err
	}
	defer lock.Unlock(ctx)
	return work(ctx)
}

func acquireDropped(ctx context.Context, lock *fenced.Lock) error {
	_, err := lock.Acquire(ctx, rlock.Wait(time.Second), rlock.Reenter(), rlock.Lasting("serves")) // want `the hold that Acquire returns is dropped`
	if err != nil {
		return err
	}
	return work(ctx)
}

func tryPermitDropped(ctx context.Context, jobs *fenced.Semaphore) error {
	_, err := jobs.Acquire(ctx, rlock.Wait(time.Second)) // want `the hold that Acquire returns is dropped`
	if err != nil {
		return err
	}
	return work(ctx)
}

func noTerm(ctx context.Context, election *leader.Election) error {
	if _, err := election.Campaign(ctx); err != nil { // want `the hold that Campaign returns is dropped: StepDown needs it`
		return err
	}
	return work(ctx)
}

func probe(ctx context.Context, lock *rlock.Lock) {
	if _, err := lock.TryLock(ctx, 0, 0); !errors.Is(err, rlock.ErrNotAcquired) {
		log.Fatal("somebody should have it")
	}
	if _, err := lock.TryLock(ctx, 0, 0); err == nil {
		log.Fatal("somebody should have it")
	}
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

func forced(ctx context.Context, client *rlock.Client) error {
	lock := rlock.NewLock(client, "a")
	if _, err := lock.Lock(ctx); err != nil {
		return err
	}
	_, err := rlock.NewLock(client, "a").ForceUnlock(ctx)
	return err
}

func onPurpose(ctx context.Context, lock *rlock.Lock) {
	_, _ = lock.Lock(ctx)
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

func work(context.Context) error { return nil }
