package errcompare

import (
	"context"

	"github.com/fencelock/fencelock/rlock"
)

func unlocks(ctx context.Context, lock *rlock.Lock) bool {
	err := lock.Unlock(ctx)
	return err != rlock.ErrNotHeld // want `never equal to rlock.ErrNotHeld`
}
