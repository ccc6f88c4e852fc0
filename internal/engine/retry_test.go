package engine

import (
	"context"
	"errors"
	"fmt"
	"github.com/fencelock/fencelock/internal/locktest"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// A TestInsistSaysWhatWasSaidBefore that was refused, or for which no connection could be had in time, and that then hung until its time was over,
// says what was said before.
func TestInsistSaysWhatWasSaidBefore(t *testing.T) {
	for _, said := range []error{errReadOnly, &net.OpError{Op: "dial", Net: "tcp", Err: os.ErrDeadlineExceeded}, fmt.Errorf("dial: %w", context.DeadlineExceeded)} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			var attempts atomic.Int32
			_, maybeExecuted, err := retry(ctx, 400*time.Millisecond, func(ctx context.Context) (int, error) {
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
