package lostunlock

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/leader"
	"github.com/fencelock/fencelock/rlock"
)

// bad forgets the lock where it leaves early.
func bad(ctx context.Context, lock *rlock.Lock) error {
	held, err := lock.Lock(ctx) // want `the lock is not unlocked on all paths: the return on line 21 is reached without Unlock\(held\)`
	if err != nil {
		return err
	}
	if err := work(held); err != nil {
		return err
	}
	return lock.Unlock(held)
}

// good unlocks however it leaves.
func good(ctx context.Context, lock *rlock.Lock) (err error) {
	held, err := lock.Lock(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Unlock(held)) }()
	return work(held)
}

func never(ctx context.Context, lock *fenced.Lock, db *sql.DB) error {
	held, token, err := lock.LockAndGetToken(ctx) // want `the lock is not unlocked: held is never given to Unlock`
	if err != nil {
		return err
	}
	_, err = db.ExecContext(held, "UPDATE account SET fence = $1", token)
	return err
}

func toTheEnd(ctx context.Context, lock *rlock.Lock, quick bool) {
	held, err := lock.Lock(ctx) // want `the end of the function is reached without Unlock\(held\)`
	if err != nil {
		return
	}
	if quick {
		_ = lock.Unlock(held)
		return
	}
	_ = work(held)
}

func round(ctx context.Context, lock *rlock.Lock, jobs []int) {
	for _, job := range jobs {
		held, err := lock.TryLock(ctx, time.Second, 0) // want `the loop takes it again without Unlock\(held\)`
		if err != nil {
			continue
		}
		if job == 0 {
			continue
		}
		_ = work(held)
		_ = lock.Unlock(held)
	}
}

func bounded(ctx context.Context, lock *rlock.Lock, use func(context.Context) error) error {
	held, err := lock.Lock(ctx) // want `the lock is not unlocked: held is never given to Unlock`
	if err != nil {
		return err
	}
	short, cancel := context.WithTimeout(held, time.Second)
	defer cancel()
	return use(short)
}

func reassigned(ctx context.Context, lock *rlock.Lock) error {
	ctx, err := lock.Lock(ctx) // want `the lock is not unlocked: ctx is never given to Unlock`
	if err != nil {
		return err
	}
	return work(ctx)
}

func acquireReturns(ctx context.Context, lock *rlock.Lock) error {
	hold, err := lock.Acquire(ctx) // want `the lock is not unlocked on all paths: the return on line 95 is reached without hold.Unlock`
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

func termOnOnePath(ctx context.Context, election *leader.Election) error {
	term, err := election.Campaign(ctx) // want `the lock is not unlocked on all paths: the return on line 143 is reached without term.StepDown`
	if err != nil {
		return err
	}
	if err := work(term.Context()); err != nil {
		return err
	}
	return term.StepDown(ctx)
}

func work(context.Context) error { return nil }

func several(ctx context.Context, a *fenced.Lock, b *fenced.Semaphore, quick bool) error {
	hold, err := fenced.AcquireAll(ctx, []fenced.Acquirer{a, b}) // want `the return on line 156 is reached without hold.Unlock`
	if err != nil {
		return err
	}
	if quick {
		return work(hold.Context())
	}
	return hold.Unlock(ctx)
}

func severalUnlocked(ctx context.Context, a, b *rlock.Lock) (err error) {
	hold, err := rlock.AcquireAll(ctx, []*rlock.Lock{a, b})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, hold.Unlock(ctx)) }()
	return work(hold.Context())
}
