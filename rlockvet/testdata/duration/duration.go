package duration

import (
	"context"
	"time"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/rlock"
)

// bad has Java's numbers, which are nanoseconds here.
func bad(ctx context.Context, lock *rlock.Lock) error {
	return lock.TryDo(ctx, 3000, 10000, work) // want `a wait of 3µs is an error, it is 0 or at least 1ms: a number without a unit is nanoseconds` `a lease of 10µs is an error, it is 0 or at least 10ms`
}

// good says the unit.
func good(ctx context.Context, lock *rlock.Lock) error {
	return lock.TryDo(ctx, 3*time.Second, 10*time.Second, work)
}

const short = 5 * time.Millisecond

func leases(ctx context.Context, lock *fenced.Lock) (context.Context, error) {
	held, err := lock.LockLease(ctx, short) // want `a lease of 5ms is an error, it is 0 or at least 10ms`
	if err != nil {
		return held, err
	}
	return lock.TryLock(held, 0, -1) // want `a negative lease is an error: what is -1 in Java is 0 here`
}

func zero(ctx context.Context, lock *rlock.Lock, wait time.Duration) error {
	return lock.TryDo(ctx, wait, 0, work)
}

func work(context.Context) error { return nil }
