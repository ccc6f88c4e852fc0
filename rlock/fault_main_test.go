package rlock_test

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"
)

// TestMain runs more parallel tests at a time than there are processors, for they wait most of the time, and requires
// that no goroutine of the library is left when all of them are over (Inv9), whatever they did to it. A test that failed
// may have left some.
func TestMain(m *testing.M) {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		_ = flag.Set("test.parallel", "12")
	}
	code := m.Run()
	var left []string
	for deadline := time.Now().Add(time.Minute); code == 0; time.Sleep(10 * time.Millisecond) {
		if left = faultLeft(); len(left) == 0 {
			break
		}
		if time.Now().After(deadline) {
			fmt.Fprintf(os.Stderr, "Inv9: %d goroutines remain:\n\n%s\n", len(left), strings.Join(left, "\n\n"))
			code = 1
		}
	}
	os.Exit(code)
}

// faultLeft is the stacks of goroutines that the library started.
func faultLeft() []string {
	buf := make([]byte, 1<<22)
	var left []string
	for stack := range strings.SplitSeq(string(buf[:runtime.Stack(buf, true)]), "\n\n") {
		for _, room := range []string{"rlock.", "watchdog.", "pubsub.", "scripts."} {
			if strings.Contains(stack, "created by github.com/fencelock/fencelock/"+room) {
				left = append(left, stack)
				break
			}
		}
	}
	return left
}
