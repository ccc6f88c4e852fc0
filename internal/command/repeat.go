package command

import (
	"context"
	"fmt"
	"time"

	"github.com/fencelock/fencelock/scripts"
)

// ErrSilence is the error of a call that has waited for an answer for as long as it may.
var ErrSilence = fmt.Errorf("no answer from Redis in time: %w", context.DeadlineExceeded)

const (
	firstBackoff = 10 * time.Millisecond // between repeats of a command, doubled up to
	endedBackoff = time.Millisecond      // after an error of a connection that had ended,
	maxEnded     = 100                   // so many times
)

// LastBackoff is the longest pause between two repeats of a command that somebody waits for.
const LastBackoff = 500 * time.Millisecond

// A Backoff is the pauses between repeats of a command. The zero value is before the first one.
type Backoff struct {
	pause time.Duration // the last one that was doubled; 0 for none
	ended int           // how many short ones there were
}

// Next returns the pause after this error, which is most at most.
func (b *Backoff) Next(err error, most time.Duration) time.Duration {
	if pause, ended := b.AfterEnded(err); ended {
		return pause
	}
	b.pause = min(max(2*b.pause, firstBackoff), most)
	return b.pause
}

// AfterEnded returns the pause after an error of a connection that had ended; false after another
// error, and after too many. A connection that was idle while its server went away fails at once.
// go-redis hands out all of these before it dials, and with TLS, or a dialer of the user's, it does
// not see that they have ended. A call that waited longer and longer after each of them would fail
// beside a server that answers.
func (b *Backoff) AfterEnded(err error) (pause time.Duration, ended bool) {
	if scripts.Ended(err) && b.ended < maxEnded {
		b.ended++
		return endedBackoff, true
	}
	return 0, false
}

// Repeat sends a command that may be repeated, again and again until it is answered, fails for
// good, or ctx ends. An attempt that has no answer after the time each is followed by another one.
// An answer to an earlier attempt counts as well, so that there is one also where the way to Redis
// takes longer than each. maybeExecuted: an earlier attempt got no answer, so Redis may have
// executed it. Where the last attempt only ran out of time, its error is joined with the last one
// that says more.
func Repeat[T any](ctx context.Context, each time.Duration, send func(context.Context) (T, error)) (value T, maybeExecuted bool, err error) {
	return repeat(ctx, each, make(chan T, 1), send)
}

// repeat is Repeat beside an attempt that the caller has made. answered, with room for one, gets
// the first answer to any of them.
func repeat[T any](ctx context.Context, each time.Duration, answered chan T, send func(context.Context) (T, error)) (value T, maybeExecuted bool, err error) {
	type failure struct {
		value T
		err   error
	}
	var said error
	var pauses Backoff
	for {
		actx, cancel := context.WithTimeout(ctx, each)
		failed := make(chan failure, 1)
		go func() {
			v, err := send(actx)
			if err != nil {
				failed <- failure{v, err}
				return
			}
			offer(answered, v)
		}()
		answer, ok, got := await(actx, answered, failed)
		hung := actx.Err() != nil
		cancel()
		err = got.err
		switch {
		case ok:
			return answer, maybeExecuted, nil
		case err != nil && !scripts.Passing(err) && !hung:
			return got.value, maybeExecuted, err
		case err == nil, err == context.DeadlineExceeded:
			err = ErrSilence
		}
		maybeExecuted = maybeExecuted || scripts.Unanswered(err)
		switch {
		case err != ErrSilence: // a dial that took too long is one too by errors.Is, but says more
			said = err
		case said != nil:
			err = fmt.Errorf("%w, after: %w", ErrSilence, said)
		}
		answer, ok = pause(ctx, pauses.Next(err, LastBackoff), answered)
		switch {
		case ok:
			return answer, maybeExecuted, nil
		case ctx.Err() != nil:
			return answer, maybeExecuted, err
		}
	}
}

// offer puts an answer into the channel, if it is the first one there.
func offer[T any](answered chan<- T, answer T) {
	select {
	case answered <- answer:
	default:
	}
}

// await waits for an answer, for what else there may be, or until ctx ends. An answer that is there
// counts before all else.
func await[T, U any](ctx context.Context, answered <-chan T, other <-chan U) (answer T, ok bool, got U) {
	select {
	case answer = <-answered:
		return answer, true, got
	case got = <-other:
	case <-ctx.Done():
		select {
		case got = <-other:
		default:
		}
	}
	select {
	case answer = <-answered:
		ok = true
	default:
	}
	return answer, ok, got
}

// pause waits for d, until ctx ends, or until there is an answer, which it returns.
func pause[T any](ctx context.Context, d time.Duration, answered <-chan T) (answer T, ok bool) {
	t := time.NewTimer(d)
	defer t.Stop()
	answer, ok, _ = await(ctx, answered, t.C)
	return answer, ok
}

// Sleep waits; false when ctx ended first.
func Sleep(ctx context.Context, d time.Duration) bool {
	pause[struct{}](ctx, d, nil)
	return ctx.Err() == nil
}
