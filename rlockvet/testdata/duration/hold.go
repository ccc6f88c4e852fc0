package duration

import (
	"context"
	"time"

	"github.com/fencelock/fencelock/rlock"
)

func acquire(ctx context.Context, lock *rlock.Lock, hold *rlock.Hold) {
	_, _ = lock.Acquire(ctx, rlock.Wait(3), rlock.Lease(10)) // want `a wait of 3ns is an error, it is 0 or at least 1ms` `a lease of 10ns is an error, it is 0 or at least 10ms`
	_ = hold.Extend(ctx, 30)                                 // want `a lease of 30ns is an error`
	_, _ = lock.Acquire(ctx, rlock.Wait(0), rlock.Lease(10*time.Second), rlock.Reenter())
	_ = hold.Extend(ctx, 30*time.Second)
}
