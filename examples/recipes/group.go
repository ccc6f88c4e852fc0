package recipes

import (
	"context"

	"golang.org/x/sync/errgroup"

	"github.com/fencelock/fencelock/fenced"
)

// Together runs the steps at the same time under one hold. The first error, and the loss of the lock, end the context of all.
func Together(ctx context.Context, lock *fenced.Lock, steps ...func(ctx context.Context) error) error {
	return lock.Do(ctx, func(ctx context.Context, _ int64) error {
		group, ctx := errgroup.WithContext(ctx)
		for _, step := range steps {
			group.Go(func() error {
				if err := lock.Check(ctx); err != nil { // looks at the clocks
					return err
				}
				return step(ctx)
			})
		}
		return group.Wait()
	})
}
