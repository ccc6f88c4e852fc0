package held

import (
	"context"
	"time"

	"github.com/fencelock/fencelock/fenced"
)

func permitDropped(ctx context.Context, jobs *fenced.Semaphore) {
	jobs.Acquire(ctx) // want `the hold that Acquire returns is dropped: Unlock needs it`
}

func tryPermitDropped(ctx context.Context, jobs *fenced.Semaphore) error {
	_, err := jobs.TryAcquire(ctx, time.Second, 0) // want `the hold that TryAcquire returns is dropped`
	if err != nil {
		return err
	}
	return work(ctx)
}
