package migrating

import (
	"context"

	"github.com/bsm/redislock"
	"github.com/go-redsync/redsync/v4"

	"github.com/fencelock/fencelock/rlock"
)

// DepositBothRedsync excludes processes that still have redsync alone, and those that have both.
func DepositBothRedsync(ctx context.Context, rs *redsync.Redsync, client *rlock.Client, add func(ctx context.Context, token int64) error) error {
	return DepositRedsync(ctx, rs, func(ctx context.Context) error { // the old lock first, everywhere
		return DepositFencelock(ctx, client, add)
	})
}

// DepositBothRedislock is the same beside redislock.
func DepositBothRedislock(ctx context.Context, locker *redislock.Client, client *rlock.Client, add func(ctx context.Context, token int64) error) error {
	return DepositRedislock(ctx, locker, func(ctx context.Context) error {
		return DepositFencelock(ctx, client, add)
	})
}
