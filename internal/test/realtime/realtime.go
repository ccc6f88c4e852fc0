// Package realtime marks the tests that a busy machine can make fail although the code is right: they wait in real time for a process, a
// lease or a bound. internal/test/gotest runs such a test again, alone, and names it at the end. Nobody runs a test without the mark again, above all none in
// virtual time (testing/synctest), which no machine makes late; nor one that says "Inv1: " or "Inv2: ", of exclusion or of tokens.
package realtime

import (
	"os"
	"testing"
	"time"
)

// Mark begins the line by which a failed test says that it may be run again. Behind it stands why.
const Mark = "realtime: "

// Test marks the test, and its subtests. why names what the test waits for, such as "a frozen server" or "a lease of 100 ms".
func Test(t testing.TB, why string) {
	t.Helper()
	Skip(t)
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(Mark + why)
		}
	})
}

// Unwanted tells whether the environment variable REDIS_VIRTUAL is "only": tests in virtual time alone are wanted.
func Unwanted() bool { return os.Getenv("REDIS_VIRTUAL") == "only" }

// Skip skips the test where it is unwanted.
func Skip(t testing.TB) {
	t.Helper()
	if Unwanted() {
		t.Skip("in real time, and REDIS_VIRTUAL=only")
	}
}

// Bound is the mark of one failure alone, for the message of a bound that was passed. In a bubble of testing/synctest it is empty.
func Bound() string {
	if time.Now().Year() < 2010 { // a bubble begins with the year 2000
		return ""
	}
	return Mark
}
