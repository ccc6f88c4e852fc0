package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/fencelock/fencelock/internal/test/locktest"
)

// Inv12: the error of a context that has ended is its Err and its cause, and says neither twice.
func TestInv12_ErrorOfAContext(t *testing.T) {
	why, cancelled := errors.New("the user's reason"), fmt.Errorf("the user's reason: %w", context.Canceled)
	end := func(cause error) context.Context {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(cause)
		return ctx
	}
	late, cancel := context.WithTimeout(t.Context(), -1)
	defer cancel()
	lateCause, cancelCause := context.WithTimeoutCause(t.Context(), -1, why)
	defer cancelCause()
	for _, c := range []struct {
		what string
		ctx  context.Context
		is   []error
		text string
	}{
		{"cancelled", end(nil), []error{context.Canceled}, "context canceled"},
		{"too late", late, []error{context.DeadlineExceeded}, "context deadline exceeded"},
		{"cancelled with a cause", end(why), []error{context.Canceled, why}, "context canceled: the user's reason"},
		{"cancelled with a cause that says so", end(cancelled), []error{context.Canceled, cancelled}, "the user's reason: context canceled"},
		{"too late with a cause", lateCause, []error{context.DeadlineExceeded, why}, "context deadline exceeded: the user's reason"},
	} {
		err := contextError(c.ctx)
		locktest.IsError(t, err, c.is...)
		locktest.Equal(t, c.what, err.Error(), c.text)
	}
}

// Inv12: the end of a hold says what is known of it. Whatever that is, the hold's context was cancelled.
func TestInv12_ErrorOfAHold(t *testing.T) {
	for _, c := range []struct {
		end  endError
		text string
	}{
		{endError{lock: "l", err: ErrClosed}, `rlock: "l": client closed`},
		{endError{lock: "l", err: ErrLost, detail: "the lease ran out"}, `rlock: "l": lock lost: the lease ran out`},
		{endError{lock: "l", err: ErrLost, detail: "the lease ran out", renewalErr: io.EOF}, `rlock: "l": lock lost: the lease ran out; last renewal: EOF`},
	} {
		locktest.Equal(t, "text", c.end.Error(), c.text)
		locktest.IsError(t, &c.end, c.end.err, context.Canceled)
		locktest.IsNotError(t, &c.end, context.DeadlineExceeded)
		if c.end.renewalErr != nil {
			locktest.IsError(t, &c.end, c.end.renewalErr)
		}
	}
}

// Two errors are joined where there are two.
func TestErrorWithWhatWasSaid(t *testing.T) {
	locktest.Equal(t, "without", with(ErrNotAcquired, nil), ErrNotAcquired)
	err := with(ErrNotAcquired, io.EOF)
	locktest.IsError(t, err, ErrNotAcquired, io.EOF)
	locktest.Equal(t, "text", err.Error(), ErrNotAcquired.Error()+": EOF")
}
