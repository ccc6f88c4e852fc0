package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencelock/fencelock/internal/test/locktest"
)

// An attempt that was refused, or for which no connection could be had in time, and that then hung
// until its time was over, says what was said before.
func TestRepeatSaysWhatWasSaidBefore(t *testing.T) {
	for _, said := range []error{errReadOnly, &net.OpError{Op: "dial", Net: "tcp", Err: os.ErrDeadlineExceeded}, fmt.Errorf("dial: %w", context.DeadlineExceeded)} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			var attempts atomic.Int32
			_, maybeExecuted, err := Repeat(ctx, 400*time.Millisecond, func(ctx context.Context) (int, error) {
				if attempts.Add(1) == 1 {
					return 0, said
				}
				<-ctx.Done()
				return 0, ctx.Err()
			})
			if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, said) || strings.Count(err.Error(), said.Error()) != 1 {
				t.Errorf("%v: after %d attempts it says: %v", said, attempts.Load(), err)
			}
			if said == errReadOnly && (!maybeExecuted || attempts.Load() < 3) {
				t.Errorf("maybeExecuted: %v, %d attempts", maybeExecuted, attempts.Load())
			}
		})
	}
}

// errReadOnly is the error of a replica, as go-redis has it.
var errReadOnly error = locktest.Reply("READONLY You can't write against a read only replica.")

// P8: the pauses after errors of connections that have ended are short, up to 100 of them.
func TestP8_PausesAfterEndedConnections(t *testing.T) {
	var b Backoff
	for range maxEnded {
		locktest.Equal(t, "pause", b.Next(io.EOF, LastBackoff), time.Millisecond)
	}
	locktest.Equal(t, "pause after many", b.Next(io.EOF, LastBackoff), firstBackoff)
	locktest.Equal(t, "pause after another error", b.Next(errReadOnly, LastBackoff), 2*firstBackoff)
	for range 10 {
		b.Next(errReadOnly, LastBackoff)
	}
	locktest.Equal(t, "the longest pause", b.Next(errReadOnly, LastBackoff), LastBackoff)
}

// A command that is refused again and again is repeated after 10 ms, then after twice as long each
// time, up to half a second.
func TestRetryPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		began := time.Now()
		var at []time.Duration
		_, maybeExecuted, err := Repeat(ctx, time.Second, func(context.Context) (int, error) {
			at = append(at, time.Since(began)/time.Millisecond)
			return 0, errReadOnly
		})
		locktest.DeepEqual(t, "attempts at", at, []time.Duration{0, 10, 30, 70, 150, 310, 630, 1130, 1630, 2130, 2630})
		locktest.IsError(t, err, errReadOnly)
		locktest.Equal(t, "maybe executed", maybeExecuted, false)
		locktest.Equal(t, "took", time.Since(began), 3*time.Second)
	})
}

// P12: an attempt without an answer may have been executed, whatever the attempts after it say.
func TestP12_RetryInDoubt(t *testing.T) {
	for _, c := range []struct {
		what          string
		errs          []error // of the attempts before the one that is answered
		maybeExecuted bool
	}{
		{what: "answered at once"},
		{what: "refused", errs: []error{errReadOnly, errReadOnly}},
		{what: "no answer", errs: []error{io.EOF}, maybeExecuted: true},
		{what: "no answer, and then refused", errs: []error{io.EOF, errReadOnly}, maybeExecuted: true},
		{what: "refused, and then no answer", errs: []error{errReadOnly, io.EOF}, maybeExecuted: true},
	} {
		synctest.Test(t, func(t *testing.T) {
			n := 0
			value, maybeExecuted, err := Repeat(t.Context(), time.Second, func(context.Context) (int, error) {
				if n++; n <= len(c.errs) {
					return 0, c.errs[n-1]
				}
				return 7, nil
			})
			if value != 7 || maybeExecuted != c.maybeExecuted || err != nil {
				t.Errorf("%s: value %d, maybe executed %v, %v", c.what, value, maybeExecuted, err)
			}
		})
	}
}

// P12: an attempt that ends with the caller's context may have been executed too. Its error,
// context.Canceled, is none that goes away.
func TestP12_RetryEndsWithItsContext(t *testing.T) {
	for range 50 { // which of the two is seen first, the end or the error, is not certain
		ctx, cancel := context.WithCancel(t.Context())
		_, maybeExecuted, err := Repeat(ctx, time.Minute, func(ctx context.Context) (int, error) {
			cancel()
			return 0, ctx.Err()
		})
		if !maybeExecuted || err == nil {
			t.Fatalf("maybe executed %v, %v", maybeExecuted, err)
		}
	}
}

// Where no attempt says anything, not even that its time is over, the error is that of the time
// alone.
func TestRetryOfSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, maybeExecuted, err := Repeat(ctx, 400*time.Millisecond, func(context.Context) (int, error) {
			time.Sleep(time.Minute)
			return 0, io.EOF
		})
		locktest.Equal(t, "error", err, ErrSilence)
		locktest.Equal(t, "maybe executed", maybeExecuted, true)
		locktest.Sleep(time.Minute) // the attempts end
	})
}

// A pause ends with its context, and says so, also where the context has ended before.
func TestSleepEndsWithItsContext(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for range 200 { // both are there: the end, and the end of the pause
		locktest.Equal(t, "it goes on", Sleep(ended, 1), false)
	}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		locktest.Equal(t, "it goes on", Sleep(ctx, 400*time.Millisecond), true)
		locktest.Equal(t, "it goes on", Sleep(ctx, time.Minute), false)
		locktest.Equal(t, "took", time.Since(began), time.Second)
	})
}
