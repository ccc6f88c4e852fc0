package engine

import (
	"context"

	"github.com/fencelock/fencelock/internal/holder"
)

// Within returns what ask does, or, where ctx ends first, the error of ctx. ask goes on then, on a goroutine of its own, and must use
// nothing that its caller changes: a read from Redis cannot be interrupted.
func Within[T any](ctx context.Context, ask func() (T, error)) (T, error) {
	got, ok := detach(ctx, func() result[T] {
		value, err := ask()
		return result[T]{value, err}
	})
	if !ok {
		return got.value, holder.ContextError(ctx)
	}
	return got.value, got.err
}
