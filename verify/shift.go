//go:build shift

package main

import "time"

const canShift = true

// shiftClock sets this program's wall clock. time.Shift is there in programs that build has built.
func shiftClock(by time.Duration) { time.Shift(by) }
