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
	endedBackoff = time.Millisecond // after an error of a connection that had ended,
	maxEnded     = 100              // so many times
)

// A backoff is the pauses between repeats of a command. The zero value is before the first one.
type backoff struct {
	pause time.Duration // the last one that was doubled; 0 for none
	ended int           // how many short ones there were
}

// next returns the pause after this error, which is most at most. A connection that was idle while its server went away fails at once.
// go-redis hands out all of these before it dials, and with TLS, or a dialer of the user's, it does not see that they have ended.
// A call that waited longer and longer after each of them would fail beside a server that answers.
func (b *backoff) next(err error, most time.Duration) time.Duration {
	if scripts.Ended(err) && b.ended < maxEnded {
		b.ended++
		return endedBackoff
	}
	b.pause = min(max(2*b.pause, firstBackoff), most)
	return b.pause
}

// retry sends a command that may be repeated, again and again until it is answered, fails for good, or ctx ends. An attempt that has no
// answer after the time each is followed by another one. An answer to an earlier attempt counts as well, so that there is one also where
// the way to Redis takes longer than each. maybeExecuted: an earlier attempt got no answer, so Redis may have executed it. Where the last
// attempt only ran out of time, its error is joined with the last one that says more.
func retry[T any](ctx context.Context, each time.Duration, send func(context.Context) (T, error)) (value T, maybeExecuted bool, err error) {
	return retryBeside(ctx, each, make(chan T, 1), send)
}

// retryBeside is retry beside an attempt that the caller has made. answered, with room for one, gets the first answer to any of them.
func retryBeside[T any](ctx context.Context, each time.Duration, answered chan T, send func(context.Context) (T, error)) (value T, maybeExecuted bool, err error) {
	var said error
	var pauses backoff
	for {
		actx, cancel := context.WithTimeout(ctx, each)
		own := make(chan result[T], 1)
		go func() {
			v, err := send(actx)
			if err == nil {
				select {
				case answered <- v:
				default:
				}
			}
			own <- result[T]{v, err}
		}()
		var got result[T]
		ok := true
		select {
		case got = <-own:
		case got.value = <-answered:
		case <-actx.Done():
			select {
			case got = <-own:
			case got.value = <-answered:
			default:
				ok = false
			}
		}
		hung := actx.Err() != nil
		cancel()
		if err = got.err; ok && (err == nil || !scripts.Passing(err) && !hung) {
			return got.value, maybeExecuted, err
		}
		if err == nil || err == context.DeadlineExceeded {
			err = errSilence
		}
		maybeExecuted = maybeExecuted || scripts.Unanswered(err)
		switch {
		case err != errSilence: // a dial that took too long is one too by errors.Is, but says more
			said = err
		case said != nil:
			err = fmt.Errorf("%w, after: %w", errSilence, said)
		}
		pause := time.NewTimer(pauses.next(err, lastBackoff))
		select {
		case value = <-answered:
			return value, maybeExecuted, nil
		case <-pause.C:
		case <-ctx.Done():
		}
		pause.Stop()
		if ctx.Err() != nil {
			select {
			case value = <-answered:
				return value, maybeExecuted, nil
			default:
				return value, maybeExecuted, err
			}
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
