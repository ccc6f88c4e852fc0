package lostunlock

import (
	"context"
	"errors"
	"log"
	"time"

	"github.com/fencelock/fencelock/rlock"
)

func sorts(ctx context.Context, lock *rlock.Lock) error {
	held, err := lock.TryLock(ctx, time.Second, 0)
	switch {
	case errors.Is(err, rlock.ErrNotAcquired):
		return nil
	case err != nil:
		return err
	}
	err = work(held)
	return errors.Join(err, lock.Unlock(held))
}

func patient(ctx context.Context, lock *rlock.Lock) error {
	for {
		held, err := lock.TryLock(ctx, time.Second, 0)
		if err != nil && errors.Is(err, rlock.ErrNotAcquired) {
			continue
		}
		if err != nil {
			return err
		}
		_ = work(held)
		return lock.Unlock(held)
	}
}

func flagged(ctx context.Context, lock *rlock.Lock, early bool) {
	held, err := lock.Lock(ctx)
	if err != nil {
		return
	}
	unlocked := false
	if early {
		_ = lock.Unlock(held)
		unlocked = true
	}
	_ = work(ctx)
	if !unlocked {
		_ = lock.Unlock(held)
	}
}

func told(ctx context.Context, lock *rlock.Lock) bool {
	held, err := lock.TryLock(ctx, 0, 0)
	got := err == nil
	if !got {
		return false
	}
	defer lock.Unlock(held)
	return work(held) == nil
}

func derived(ctx context.Context, lock *rlock.Lock) error {
	held, err := lock.Lock(ctx)
	if err != nil {
		return err
	}
	short, cancel := context.WithTimeout(held, time.Second)
	defer cancel()
	_ = work(short)
	return lock.Unlock(short)
}

// ended leaves a hold alone that has ended: nobody renews it.
func ended(ctx context.Context, lock *rlock.Lock, jobs <-chan int) error {
	held, err := lock.Lock(ctx)
	if err != nil {
		return err
	}
	for {
		if err := lock.Check(held); err != nil {
			return err
		}
		select {
		case <-held.Done():
			return context.Cause(held)
		case _, ok := <-jobs:
			if !ok {
				return lock.Unlock(held)
			}
		}
	}
}

type session struct {
	lock *rlock.Lock
	ctx  context.Context
}

func (s *session) helped(ctx context.Context) error {
	held, err := s.lock.Lock(ctx)
	if err != nil {
		return err
	}
	err = work(held)
	s.giveBack(held)
	return err
}

func (s *session) giveBack(ctx context.Context) { s.finish(ctx) }

func (s *session) finish(ctx context.Context) { _ = s.lock.Unlock(ctx) }

func exits(ctx context.Context, lock *rlock.Lock) {
	held, err := lock.Lock(ctx)
	if err != nil {
		fail(err)
	}
	if err := work(held); err != nil {
		fail(err)
	}
	_ = lock.Unlock(held)
}

func fail(err error) { log.Fatal(err) }

// daily keeps others from doing it again for a day.
func daily(ctx context.Context, lock *rlock.Lock) error {
	held, err := lock.TryLock(ctx, 0, 24*time.Hour)
	if err != nil {
		return err
	}
	return work(held)
}

// lent is unlocked by whoever has the lock.
func lent(ctx context.Context, lock *rlock.Lock, runner func(*rlock.Lock) interface{ Run(context.Context) }) {
	r := runner(lock)
	held, err := lock.Lock(ctx)
	if err != nil {
		return
	}
	r.Run(held)
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

func acquireAndUnlockByContext(ctx context.Context, lock *rlock.Lock) error {
	hold, err := lock.Acquire(ctx)
	if err != nil {
		return err
	}
	return lock.Unlock(hold.Context())
}

func released(ctx context.Context, lock *rlock.Lock, releaseAll func(context.Context)) {
	if held, err := lock.Lock(ctx); err == nil {
		releaseAll(held)
	}
}
