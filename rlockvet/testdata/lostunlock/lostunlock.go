package lostunlock

import (
	"context"
	"database/sql"
	"errors"
	"log"
	"net/http"
	"time"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/rlock"
)

// bad forgets the lock where it leaves early.
func bad(ctx context.Context, lock *rlock.Lock) error {
	held, err := lock.Lock(ctx) // want `the lock is not unlocked on all paths: the return on line 22 is reached without Unlock\(held\)`
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

func bounded(ctx context.Context, lock *rlock.Lock) error {
	held, err := lock.Lock(ctx) // want `the lock is not unlocked: held is never given to Unlock`
	if err != nil {
		return err
	}
	short, cancel := context.WithTimeout(held, time.Second)
	defer cancel()
	return work(short)
}

func reassigned(ctx context.Context, lock *rlock.Lock) error {
	ctx, err := lock.Lock(ctx) // want `the lock is not unlocked: ctx is never given to Unlock`
	if err != nil {
		return err
	}
	return work(ctx)
}

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

func returned(ctx context.Context, lock *rlock.Lock) (context.Context, error) {
	held, err := lock.Lock(ctx)
	if err != nil {
		return ctx, err
	}
	return held, nil
}

type session struct {
	lock *rlock.Lock
	ctx  context.Context
}

func (s *session) stored(ctx context.Context) error {
	held, err := s.lock.Lock(ctx)
	if err != nil {
		return err
	}
	s.ctx = held
	return nil
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

func (s *session) begun(ctx context.Context) error {
	held, err := s.lock.Lock(ctx)
	if err != nil {
		return err
	}
	return s.begin(held)
}

func (s *session) begin(ctx context.Context) error {
	s.ctx = ctx
	return nil
}

func captured(ctx context.Context, lock *rlock.Lock) (func() error, error) {
	held, err := lock.Lock(ctx)
	if err != nil {
		return nil, err
	}
	return func() error { return lock.Unlock(held) }, nil
}

func carried(ctx context.Context, lock *rlock.Lock, r *http.Request, next http.Handler) {
	held, err := lock.Lock(ctx)
	if err != nil {
		return
	}
	next.ServeHTTP(nil, r.WithContext(held))
}

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

func forced(ctx context.Context, lock *rlock.Lock) error {
	held, err := lock.Lock(ctx)
	if err != nil {
		return err
	}
	_ = work(held)
	_, err = lock.ForceUnlock(ctx)
	return err
}

func compared(ctx context.Context, lock *rlock.Lock, equal func(a, b any)) error {
	got, err := lock.TryLock(ctx, 0, 0)
	equal(got, ctx)
	return err
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

func passed(ctx context.Context, lock *rlock.Lock, each func(context.Context, *rlock.Lock)) {
	held, err := lock.Lock(ctx)
	if err != nil {
		return
	}
	each(held, lock)
}

func work(context.Context) error { return nil }
