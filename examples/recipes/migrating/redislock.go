package migrating

import (
	"context"
	"errors"
	"time"

	"github.com/bsm/redislock"
)

// DepositRedislock is the deposit with redislock v0.9.4.
func DepositRedislock(ctx context.Context, locker *redislock.Client, add func(ctx context.Context) error) (err error) {
	retry := redislock.LimitRetry(redislock.LinearBackoff(100*time.Millisecond), 30)
	lock, err := locker.Obtain(ctx, "account:42", 10*time.Second, &redislock.Options{RetryStrategy: retry})
	if err != nil {
		return err // ErrNotObtained when somebody else had it for 3 s
	}
	defer func() { err = errors.Join(err, lock.Release(context.WithoutCancel(ctx))) }()
	return add(ctx) // no longer than 10 s: nothing refreshes the lock
}
