package errcompare

import (
	"context"
	"errors"
	"io"

	"github.com/fencelock/fencelock/rlock"
)

func switches(ctx context.Context, lock *rlock.Lock) bool {
	err := lock.Do(ctx, work)
	switch err {
	case nil, io.EOF:
		return true
	case rlock.ErrLost, rlock.ErrClosed: // want `does not equal rlock.ErrLost` `does not equal rlock.ErrClosed`
		return false
	}
	return false
}

func ends(ctx context.Context, lock *rlock.Lock) error {
	return lock.Do(ctx, func(ctx context.Context) error {
		if ctx.Err() == context.Canceled { // want `ctx.Err\(\) equals context.Canceled when the caller has canceled, and not when the lock was lost`
			return nil
		}
		return ctx.Err()
	})
}

type lost struct{}

func (lost) Error() string { return "lost" }

func (lost) Is(target error) bool { return target == rlock.ErrLost }

func shadows(err error) bool {
	errors := []error{err}
	return errors[0] == rlock.ErrLost // want `does not equal rlock.ErrLost`
}

// theirs are errors of the caller's context, and of a Hold, as they are.
func theirs(ctx context.Context, lock *rlock.Lock) bool {
	hold, err := lock.Acquire(ctx)
	if err != nil {
		return errors.Is(err, io.EOF)
	}
	defer hold.Unlock(ctx)
	return ctx.Err() == context.Canceled || hold.Err() == context.Canceled || hold.Context().Err() == context.DeadlineExceeded
}

func work(context.Context) error { return nil }
