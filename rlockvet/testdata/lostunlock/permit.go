package lostunlock

import (
	"context"
	"errors"

	"github.com/fencelock/fencelock/fenced"
)

func permitNever(ctx context.Context, jobs *fenced.Semaphore) error {
	permit, err := jobs.Acquire(ctx) // want `the lock is not unlocked: permit.Unlock is never called`
	if err != nil {
		return err
	}
	if permit.Slot() == 0 {
		return work(permit.Context())
	}
	return work(ctx)
}

func permitReturns(ctx context.Context, jobs *fenced.Semaphore) error {
	permit, err := jobs.Acquire(ctx) // want `is reached without permit.Unlock`
	if err != nil {
		return err
	}
	if err := work(permit.Context()); err != nil {
		return err
	}
	return permit.Unlock(ctx)
}

func permitRight(ctx context.Context, jobs *fenced.Semaphore) (err error) {
	permit, err := jobs.Acquire(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, permit.Unlock(ctx)) }()
	return work(permit.Context())
}

func permitDo(ctx context.Context, jobs *fenced.Semaphore) error {
	return jobs.Do(ctx, func(ctx context.Context, p *fenced.Permit) error { return work(p.Context()) })
}
