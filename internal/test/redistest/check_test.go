package redistest_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencelock/fencelock/internal/test/redistest"
)

func TestEventually(t *testing.T) {
	n := 0
	redistest.Eventually(t, bound, func() bool { n++; return n == 3 }, "n is 3")
	errs := new(double).run(t, func(t testing.TB) {
		redistest.Eventually(t, 5*time.Millisecond, func() bool { return false }, "it is %d", 7)
	})
	if len(errs) != 1 || !strings.HasSuffix(errs[0], ": it is 7") {
		t.Errorf("got %q", errs)
	}
}

func TestSettles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // for its clock
		n := 0
		errs := new(double).run(t, func(t testing.TB) {
			redistest.Settles(t, time.Second, func() bool { n++; return n == 99 }, "it is %d", 7)
		})
		if n < 15 || n > 40 || len(errs) != 1 || !strings.HasSuffix(errs[0], ": it is 7") {
			t.Errorf("asked %d times, got %q", n, errs)
		}
	})
}

// remain stands for a goroutine that the project left behind.
func remain(end <-chan struct{}) { <-end }

func TestCheckGoroutines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // for its clock
		end := make(chan struct{})
		errs := new(double).run(t, func(t testing.TB) {
			redistest.CheckGoroutines(t)
			go remain(end)
		})
		if len(errs) != 1 || !strings.HasPrefix(errs[0], "1 goroutines remain") || !strings.Contains(errs[0], "remain(") {
			t.Errorf("got %q", errs)
		}
		errs = new(double).run(t, func(t testing.TB) {
			redistest.CheckGoroutines(t)
			t.Cleanup(func() { close(end) })
		})
		if len(errs) != 0 {
			t.Errorf("got %q", errs)
		}
	})
}
