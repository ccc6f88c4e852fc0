package holder

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/fencelock/fencelock/internal/test/locktest"
)

// errClosed is the error of a hold whose client was closed.
var errClosed = errors.New("client closed")

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
		err := ContextError(c.ctx)
		locktest.IsError(t, err, c.is...)
		locktest.Equal(t, c.what, err.Error(), c.text)
	}
}

// Inv12: the end of a hold says what is known of it. Whatever that is, the hold's context was cancelled.
func TestInv12_ErrorOfAHold(t *testing.T) {
	for _, c := range []struct {
		end  EndError
		text string
	}{
		{EndError{Lock: "l", Err: errClosed}, `rlock: "l": client closed`},
		{EndError{Lock: "l", Err: ErrLost, How: "the lease ran out"}, `rlock: "l": lock lost: the lease ran out`},
		{EndError{Lock: "l", Err: ErrLost, How: "the lease ran out", Renewal: io.EOF}, `rlock: "l": lock lost: the lease ran out; last renewal: EOF`},
	} {
		locktest.Equal(t, "text", c.end.Error(), c.text)
		locktest.IsError(t, &c.end, c.end.Err, context.Canceled)
		locktest.IsNotError(t, &c.end, context.DeadlineExceeded)
		if c.end.Renewal != nil {
			locktest.IsError(t, &c.end, c.end.Renewal)
		}
	}
}
