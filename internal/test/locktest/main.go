package locktest

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Main runs the tests of a package and returns the exit code. So many parallel tests run at a time, unless the command line
// says otherwise: they wait most of the time. No goroutine of the project may remain (Inv9): it has a minute to end.
func Main(m *testing.M, parallel int) (code int) {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		_ = flag.Set("test.parallel", strconv.Itoa(parallel))
	}
	code = m.Run()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		left := goroutines()
		if len(left) == 0 {
			return code
		}
		if time.Now().After(deadline) {
			fmt.Fprintf(os.Stderr, "Inv9: %d goroutines remain:\n\n%s\n", len(left), strings.Join(left, "\n\n"))
			return 1
		}
	}
}

const module = "github.com/fencelock/fencelock/"

// ofTests are the packages that only tests use.
var ofTests = []string{"internal/test/redistest", "internal/test/redisserver", "internal/test/memredis", "internal/test/fifo", "internal/test/locktest"}

// goroutines returns the stacks of the goroutines that the project has started or that run its code, but for those of the
// tests.
func goroutines() []string {
	buf := make([]byte, 1<<22)
	var left []string
	for stack := range strings.SplitSeq(string(buf[:runtime.Stack(buf, true)]), "\n\n") {
		if isLeft(stack) {
			left = append(left, stack)
		}
	}
	return left
}

// isLeft tells whether a line of the stack names a function of the project that is none of a test.
func isLeft(stack string) bool {
	for line := range strings.SplitSeq(stack, "\n") {
		function, isOurs := strings.CutPrefix(strings.TrimPrefix(line, "created by "), module)
		if !isOurs {
			continue
		}
		path, _, _ := strings.Cut(function, ".")
		isTest := strings.HasSuffix(path, "_test") || slices.Contains(ofTests, path)
		if !isTest {
			return true
		}
	}
	return false
}
