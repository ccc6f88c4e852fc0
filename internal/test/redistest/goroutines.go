package redistest

import (
	"runtime"
	"strings"
	"testing"
	"time"
)

// module is the path of this project's root package.
const module = "github.com/fencelock/fencelock"

// CheckGoroutines requires that no goroutine of this project remains when the
// test is over. Goroutines of tests and of their servers do not count; the others have 20 seconds to end, or what [Bound] makes of that. Cleanups run last first, so call it before
// anything that closes in a Cleanup. It sees the whole process: do not use it
// in a test that runs in parallel with others.
func CheckGoroutines(t testing.TB) {
	t.Helper()
	t.Cleanup(func() {
		var left []string
		if !poll(20*time.Second, func() bool {
			left = leftGoroutines()
			return len(left) == 0
		}) {
			t.Errorf("%d goroutines remain:\n\n%s", len(left), strings.Join(left, "\n\n"))
		}
	})
}

// leftGoroutines returns the stacks of the goroutines that count as leaked.
func leftGoroutines() []string {
	buf := make([]byte, 1<<20)
	n := runtime.Stack(buf, true)
	for n == len(buf) {
		buf = make([]byte, 2*len(buf))
		n = runtime.Stack(buf, true)
	}
	var left []string
	for stack := range strings.SplitSeq(strings.TrimSpace(string(buf[:n])), "\n\n") {
		ours := strings.Contains(stack, module+".") || strings.Contains(stack, module+"/")
		if ours && !isTestGoroutine(stack) && !isServer(stack) {
			left = append(left, stack)
		}
	}
	return left
}

// isServer reports whether the stack is one of the servers of tests.
func isServer(stack string) bool {
	for _, pkg := range []string{"redistest", "redisserver", "memredis"} {
		if strings.Contains(stack, module+"/internal/test/"+pkg+".") {
			return true
		}
	}
	return false
}

// isTestGoroutine reports whether the stack is that of a test, a benchmark or
// the test program itself.
func isTestGoroutine(stack string) bool {
	for _, frame := range []string{"\ntesting.tRunner(", "\ntesting.(*B).", "\ntesting.(*M).Run("} {
		if strings.Contains(stack, frame) {
			return true
		}
	}
	return false
}
