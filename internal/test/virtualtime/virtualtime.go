// Package virtualtime is how a test in virtual time tells the library that its leases are not to be checked against the
// system's boot clock: in a testing/synctest bubble that clock goes on as ever, and a lease of 100 ms would be over
// when the test, on a machine that is busy, has taken 100 ms for what are no milliseconds in the bubble.
package virtualtime

import (
	"fmt"
	"runtime/debug"
	"sync/atomic"
	"time"
)

var bubbles atomic.Int32

// Enter begins virtual time, and returns what ends it.
func Enter() (leave func()) {
	bubbles.Add(1)
	return func() { bubbles.Add(-1) }
}

// Is reports whether a test in virtual time runs in this process. It is false in every other program.
func Is() bool { return bubbles.Load() > 0 }

// EndWithinADay ends the program where the test with this name, in a bubble, is not over after a day of the bubble's time. Where somebody
// renews a lease, or looks again and again, what waits in vain would go on until go test's timeout. stop is for a test that is over.
func EndWithinADay(name string) (stop func() bool) {
	began := time.Now()
	return time.AfterFunc(day, func() {
		debug.SetTraceback("all")
		panic(fmt.Sprintf("%s: not over %v after it began, in virtual time: it waits for what does not come", name, time.Since(began)))
	}).Stop
}

const day = 24 * time.Hour
