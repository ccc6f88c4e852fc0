package migrating

import (
	"context"
	"errors"
	"time"

	"github.com/go-redsync/redsync/v4"
)

// DepositRedsync is the deposit with redsync v4.18.1.
func DepositRedsync(ctx context.Context, rs *redsync.Redsync, add func(ctx context.Context) error) (err error) {
	mutex := rs.NewMutex("account:42", redsync.WithExpiry(10*time.Second), redsync.WithTries(30), redsync.WithRetryDelay(100*time.Millisecond))
	if err := mutex.LockContext(ctx); err != nil {
		return err // also when somebody else had it for 3 s
	}
	defer func() {
		_, unlockErr := mutex.UnlockContext(context.WithoutCancel(ctx))
		err = errors.Join(err, unlockErr)
	}()
	return add(ctx) // no longer than 10 s: nothing extends the lock
}
