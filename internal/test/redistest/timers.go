package redistest

import (
	"runtime"
	"testing"
)

// FreshTimers is for a test in virtual time in which commands wait for a
// connection of a pool that is used up. go-redis keeps the timers of such waits for
// all clients of the process, and one that was made in another bubble, or outside
// of any, ends the program. FreshTimers makes go-redis forget them, now and when
// the test is over. The test calls it before its bubble begins.
func FreshTimers(t testing.TB) {
	forget := func() {
		for range 2 { // a sync.Pool keeps what it has through one collection
			runtime.GC()
		}
	}
	forget()
	t.Cleanup(forget)
}
