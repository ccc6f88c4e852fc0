package recipes

import (
	"context"
	"errors"
	"log"
	"time"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/rlock"
)

// Lead runs work in one of the processes that call it. The others wait, and one of them takes over when the leader ends or dies. They wait
// also while Redis is away, or refuses the call: that is logged each second.
func Lead(ctx context.Context, lock *fenced.Lock, work func(ctx context.Context, token int64) error) error {
	for {
		began := false
		err := lock.Do(ctx, func(ctx context.Context, token int64) error {
			began = true
			return work(ctx, token)
		})
		switch {
		case errors.Is(err, rlock.ErrLost): // another process may lead now
		case began || ctx.Err() != nil || errors.Is(err, rlock.ErrClosed):
			return err
		default: // Redis was away for longer than a call waits for it, or has refused the call
			log.Println(err)
			select {
			case <-ctx.Done():
			case <-time.After(time.Second):
			}
		}
	}
}
