package recipes

import (
	"context"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/leader"
)

// Lead runs work in one of the processes that call it. The others wait, also while Redis is away, and one takes over when the leader ends or
// dies.
func Lead(ctx context.Context, lock *fenced.Lock, work func(ctx context.Context, token int64) error) error {
	election, err := leader.New(lock)
	if err != nil {
		return err
	}
	return election.Run(ctx, func(ctx context.Context, term *leader.Term) error {
		return work(ctx, term.Token())
	})
}
