package migrating

import (
	"context"
	"time"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/rlock"
)

// DepositFencelock is the deposit with fencelock.
func DepositFencelock(ctx context.Context, client *rlock.Client, add func(ctx context.Context, token int64) error) error {
	lock := fenced.NewLock(client, "lock:account:42")
	return lock.TryDo(ctx, 3*time.Second, 10*time.Second, add) // wait, lease; with lease 0 it is renewed until add returns
}
