package recipes

import (
	"context"
	"fmt"
	"time"

	"github.com/fencelock/fencelock/fenced"
)

// Step runs a step that takes up to length, and that must not outlast the lock even if no renewal succeeds from now on.
func Step(held context.Context, lock *fenced.Lock, length time.Duration, step func(ctx context.Context) error) error {
	left, err := lock.Remaining(held)
	if err != nil {
		return err
	}
	if left < length {
		return fmt.Errorf("the lock is good for %v only, the step takes up to %v", left, length)
	}
	ctx, cancel := context.WithTimeout(held, length)
	defer cancel()
	return step(ctx)
}
