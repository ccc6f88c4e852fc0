package recipes

import (
	"context"
	"errors"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/rlock"
)

// Enqueue takes the lock of a job, and sends the job with the hold in a text. The lock is taken until Work has done the job, or until this process ends.
func Enqueue(ctx context.Context, lock *fenced.Lock, send func(ctx context.Context, hold string) error) error {
	hold, err := lock.Acquire(ctx, rlock.Wait(0)) // ErrNotAcquired: the job is queued already
	if err != nil {
		return err
	}
	text, err := hold.Export()
	if err == nil {
		err = send(ctx, text)
	}
	if err != nil {
		return errors.Join(err, hold.Unlock(ctx))
	}
	return nil
}

// Work takes over what Enqueue has sent, and does the job.
func Work(ctx context.Context, lock *fenced.Lock, hold string, do func(ctx context.Context, token int64) error) error {
	mine, err := lock.Import(ctx, hold)
	if err != nil {
		return err // ErrNotHeld: the job was delivered twice, or its lock was lost on the way
	}
	return errors.Join(do(mine.Context(), mine.Token()), mine.Unlock(ctx))
}
