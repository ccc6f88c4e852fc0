package engine

import (
	"context"
	"fmt"
	"time"

	"github.com/fencelock/fencelock/scripts"
)

// detach runs f on a goroutine of its own and returns its result; ok is false when ctx ended first. A read from Redis
// cannot be interrupted by a context; the caller can.
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

// result is a command's result for detach.
type result[T any] struct {
	value T
	err   error
}

const (
	firstBackoff = 10 * time.Millisecond // between repeats of a command, doubled up to
	lastBackoff  = 500 * time.Millisecond
)

// retry sends a command that may be repeated, again and again until it is answered, fails for good, or ctx ends. An
// attempt that hangs longer than each is followed by another. doubt tells that one before may have been executed. The error
// of an attempt that only ran out of time has with it what an attempt before it said.
func retry[T any](ctx context.Context, each time.Duration, send func(context.Context) (T, error)) (value T, doubt bool, err error) {
	var said error
	for backoff := firstBackoff; ; backoff = min(2*backoff, lastBackoff) {
		actx, cancel := context.WithTimeout(ctx, each)
		got, ok := detach(actx, func() result[T] {
			v, err := send(actx)
			return result[T]{v, err}
		})
		hung := actx.Err() != nil
		cancel()
		if err = got.err; ok && (err == nil || !scripts.Passing(err) && !hung) {
			return got.value, doubt, err
		}
		if err == nil {
			err = context.DeadlineExceeded
		}
		doubt = doubt || !ok || scripts.Unanswered(err)
		switch {
		case err != context.DeadlineExceeded: // a dial that took too long is one too by errors.Is, but says more
			said = err
		case said != nil:
			err = fmt.Errorf("%w, after: %w", context.DeadlineExceeded, said)
		}
		if !sleep(ctx, backoff) {
			return value, doubt, err
		}
	}
}

// sleep waits; false when ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}
