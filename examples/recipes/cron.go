package recipes

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/quorum"
	"github.com/fencelock/fencelock/rlock"
)

// Once is called on every machine when the clock strikes, and runs the job on one of them. It keeps the lock for at least the time
// by which the clocks of the machines may differ: a machine that comes later finds the lock taken.
func Once(ctx context.Context, lock *fenced.Lock, skew time.Duration, job func(ctx context.Context, token int64) error) error {
	for {
		began := false
		err := lock.Do(ctx, func(ctx context.Context, token int64) error {
			began = true
			late := time.NewTimer(skew)
			defer late.Stop()
			if err := job(ctx, token); err != nil {
				return err
			}
			select {
			case <-late.C:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}, rlock.Wait(0))
		switch {
		case began:
			return err
		case errors.Is(err, quorum.ErrSplitVote): // several machines asked a quorum at the same moment, and none of them got the lock
			time.Sleep(rand.N(100 * time.Millisecond))
		case errors.Is(err, rlock.ErrNotAcquired):
			return nil // another machine does it
		default:
			return err
		}
	}
}
