package errcompare

import (
	"context"
	"errors"
	"time"

	"github.com/fencelock/fencelock/guard"
	"github.com/fencelock/fencelock/guard/redisguard"
	"github.com/fencelock/fencelock/rlock"
)

// bad never finds that somebody else has the lock.
func bad(ctx context.Context, lock *rlock.Lock) error {
	held, err := lock.TryLock(ctx, time.Second, 0)
	if err == rlock.ErrNotAcquired { // want `err does not equal rlock.ErrNotAcquired, which is wrapped: use errors.Is`
		return nil
	}
	if err != nil {
		return err
	}
	defer lock.Unlock(held)
	return work(held)
}

// good asks with errors.Is.
func good(ctx context.Context, lock *rlock.Lock) error {
	held, err := lock.TryLock(ctx, time.Second, 0)
	if errors.Is(err, rlock.ErrNotAcquired) {
		return nil
	}
	if err != nil {
		return err
	}
	defer lock.Unlock(held)
	return work(held)
}

func guards(ctx context.Context, w redisguard.Writer) bool {
	return guard.ErrStale == w.Do(ctx, "INCRBY", "balance", 10).Err() // want `does not equal guard.ErrStale`
}

func late(ctx context.Context, lock *rlock.Lock) bool {
	err := lock.Do(ctx, work)
	return err == context.Canceled // want `err does not equal context.Canceled, which is wrapped`
}
