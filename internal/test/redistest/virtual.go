package redistest

import (
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencelock/fencelock/internal/test/virtualtime"
)

// dialTail is longer than go-redis dials for a command that is given up.
const dialTail = 30 * time.Second

// Virtual is [Bubble] for tests with [Pipe]. Where REDIS_SERVER is set, and
// REDIS_VIRTUAL is not, the test is skipped: no server can make it differ.
func Virtual(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	if IsReal() && os.Getenv("REDIS_VIRTUAL") == "" {
		t.Skip("in virtual time, on miniredis: for a run without REDIS_SERVER, or with REDIS_VIRTUAL")
	}
	Bubble(t, test)
}

// Bubble is synctest.Test, in which no lease ends by a clock that synctest does
// not know, however slow the machine is. A test that is not over after a day of
// its own time ends the program.
//
// A goroutine that ends by itself within dialTail may outlive the test and its
// cleanups: go-redis repeats a dial behind a closed client. One that is blocked
// for longer ends the program.
func Bubble(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	defer virtualtime.Enter()()
	synctest.Test(t, func(t *testing.T) {
		defer virtualtime.EndWithinADay(t.Name())()
		t.Cleanup(func() { time.Sleep(dialTail) }) // the first, and so the last to run: time stands still behind it
		test(t)
	})
}
