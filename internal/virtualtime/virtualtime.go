// Package virtualtime is how a test in virtual time tells the library that its leases are not to be checked against the
// system's boot clock: in a testing/synctest bubble that clock goes on as ever, and a lease of 100 ms would be over
// when the test, on a machine that is busy, has taken 100 ms for what are no milliseconds in the bubble.
package virtualtime

import "sync/atomic"

var bubbles atomic.Int32

// Enter begins virtual time, and returns what ends it.
func Enter() (leave func()) {
	bubbles.Add(1)
	return func() { bubbles.Add(-1) }
}

// Is reports whether a test in virtual time runs in this process. It is false in every other program.
func Is() bool { return bubbles.Load() > 0 }
