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
	return lock.Do(ctx, add, rlock.Wait(3*time.Second), rlock.Lease(10*time.Second)) // wait, lease; with lease 0 it is renewed until add returns
}
