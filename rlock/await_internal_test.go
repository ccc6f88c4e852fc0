package rlock

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// A command that was refused, and then hung until its time was over, says why it was refused.
func TestInsistSaysWhatWasSaidBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		var attempts atomic.Int32
		_, doubt, err := insist(ctx, 400*time.Millisecond, func(ctx context.Context) (int, error) {
			if attempts.Add(1) == 1 {
				return 0, errReadOnly
			}
			<-ctx.Done()
			return 0, ctx.Err()
		})
		if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, errReadOnly) || strings.Count(err.Error(), "READONLY") != 1 {
			t.Errorf("after %d attempts it says: %v", attempts.Load(), err)
		}
		if !doubt || attempts.Load() < 3 {
			t.Errorf("doubt: %v, %d attempts", doubt, attempts.Load())
		}
	})
}

var errReadOnly = readOnly{}

// readOnly is the error of a replica, as go-redis has it.
type readOnly struct{}

func (readOnly) Error() string { return "READONLY You can't write against a read only replica." }
func (readOnly) RedisError()   {}
