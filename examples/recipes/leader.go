package recipes

import (
	"context"
	"errors"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/rlock"
)

// Lead runs work in one of the processes that call it. The others wait, and one of them takes over when the leader ends or dies.
func Lead(ctx context.Context, lock *fenced.Lock, work func(ctx context.Context, token int64) error) error {
	for {
		err := lock.Do(ctx, work)
		if !errors.Is(err, rlock.ErrLost) {
			return err // work has ended, or ctx has
		}
	}
}
