package engine

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencelock/fencelock/internal/test/locktest"
)

// Inv6: who waits for a result leaves when the context ends, and says that there is none.
func TestInv6_Detach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		after := func(d time.Duration) func() int {
			return func() int { time.Sleep(d); return 7 }
		}
		n, ok := detach(ctx, after(100*time.Millisecond))
		if n != 7 || !ok {
			t.Errorf("a result in time: %d, %v", n, ok)
		}
		n, ok = detach(ctx, after(time.Minute))
		if n != 0 || ok {
			t.Errorf("a result that comes late: %d, %v", n, ok)
		}
		locktest.Sleep(time.Minute) // it comes
	})
}
