package engine

import (
	"context"

	"github.com/fencelock/fencelock/internal/holder"
)

// result is a command's result for detach.
type result[T any] struct {
	value T
	err   error
}

// Within returns what ask does, or, where ctx ends first, the error of ctx. ask goes on then, on a
// goroutine of its own, and must use nothing that its caller changes: a read from Redis cannot be
// interrupted.
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

// detach runs f on a goroutine of its own and returns its result; ok is false when ctx ended first.
// A read from Redis cannot be interrupted by a context; the caller can.
func detach[T any](ctx context.Context, f func() T) (result T, ok bool) {
	ch := make(chan T, 1)
	go func() { ch <- f() }()
	select {
	case v := <-ch:
		return v, true
	case <-ctx.Done():
	}
	select {
	case v := <-ch:
		return v, true
	default:
		return result, false
	}
}
