package errcompare

import (
	"context"
	"errors"

	"github.com/fencelock/fencelock/rlock"
)

func ofAHold(ctx context.Context, lock *rlock.Lock) bool {
	hold, err := lock.Acquire(ctx)
	if err == rlock.ErrNotAcquired { // want `err is wrapped and never equal to rlock.ErrNotAcquired: use errors.Is`
		return false
	}
	if err != nil {
		return false
	}
	defer hold.Unlock(ctx)
	return errors.Is(hold.Err(), context.Canceled) || hold.Err() == context.Canceled
}
