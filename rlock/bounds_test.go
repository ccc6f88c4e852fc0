package rlock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/redistest"
)

// soon bounds what should happen at once. It is less than a third of the lease, and than any poll that is to come late.
const soon = 9 * time.Second

// bound bounds what must happen and has no bound of its own.
const bound = 20 * time.Second

// failoverBound bounds what must happen on several servers: a failover takes seconds, on a busy machine twenty and more, and what
// is in doubt after it is looked after for a lease.
const failoverBound = 2 * time.Minute

// within requires that what began then has taken no longer than the bound.
func within(t testing.TB, began time.Time, bound time.Duration, what string) {
	t.Helper()
	locktest.TookAtMost(t, began, bound, 700*time.Millisecond, what)
}

// withTimeout returns a context that is cancelled with the test.
func withTimeout(t *testing.T, parent context.Context, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(parent, d)
	t.Cleanup(cancel)
	return ctx
}

// untilFired returns a context that ends when the fault has its command: the command was sent.
func untilFired(t *testing.T, f *redistest.Fault) context.Context {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	go func() {
		select {
		case <-f.Fired():
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx
}

// givesUp makes a call that gives up when the fault has its command. On a busy machine a call may have given up before: then it is made
// again.
func givesUp(t *testing.T, f *redistest.Fault, call func(context.Context) error) {
	t.Helper()
	redistest.Eventually(t, bound, func() bool {
		if err := call(untilFired(t, f)); err == nil {
			t.Fatal("the call did not give up")
		}
		select {
		case <-f.Fired():
			return true
		default:
			return false
		}
	}, "the command is sent")
}

// answered makes a call until it is answered, and returns its error. On a busy machine one try may get no answer in time.
func answered(t *testing.T, call func() error) (err error) {
	t.Helper()
	redistest.Eventually(t, bound, func() bool {
		err = call()
		return !errors.Is(err, context.DeadlineExceeded)
	}, "the call is answered")
	return err
}

// longContext returns the test's context, with an end: a holder that failed keeps its lock.
func longContext(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	t.Cleanup(cancel)
	return ctx
}
