package rlock

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/fencelock/fencelock/scripts"
)

// await runs f on a goroutine of its own and returns its result; ok is false when ctx ended first, and then late, if
// there is one, gets the result when it comes. A read from Redis cannot be interrupted by a context; the caller can.
func await[T any](ctx context.Context, f func() T, late func(T)) (result T, ok bool) {
	const (
		open = iota
		delivered
		abandoned
	)
	var state atomic.Int32
	ch := make(chan T, 1)
	go func() {
		v := f()
		if state.CompareAndSwap(open, delivered) {
			ch <- v
		} else if late != nil {
			late(v)
		}
	}()
	select {
	case v := <-ch:
		return v, true
	case <-ctx.Done():
		if state.CompareAndSwap(open, abandoned) {
			return result, false
		}
		return <-ch, true
	}
}

// outcome is a command's result for await.
type outcome[T any] struct {
	value T
	err   error
}

const (
	firstBackoff = 10 * time.Millisecond // between repeats of a command, doubled up to
	lastBackoff  = 500 * time.Millisecond
)

// insist sends a command that may be repeated, again and again until it is answered, fails for good, or ctx ends. An
// attempt that hangs longer than each is followed by another. repeat is how many came before the one that counts.
func insist[T any](ctx context.Context, each time.Duration, send func(context.Context) (T, error)) (value T, repeat int, err error) {
	for backoff := firstBackoff; ; backoff = min(2*backoff, lastBackoff) {
		actx, cancel := context.WithTimeout(ctx, each)
		got, ok := await(actx, func() outcome[T] {
			v, err := send(actx)
			return outcome[T]{v, err}
		}, nil)
		cancel()
		if ok {
			err = got.err
			if err == nil || !scripts.Passing(err) && ctx.Err() == nil && actx.Err() == nil {
				return got.value, repeat, err
			}
		}
		if err == nil {
			err = context.DeadlineExceeded
		}
		if !sleep(ctx, backoff) {
			return value, repeat, err
		}
		repeat++
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
