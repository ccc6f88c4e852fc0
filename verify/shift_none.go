//go:build !shift

package main

import "time"

// canShift tells whether this program's wall clock can be set: see shift.go.
const canShift = false

func shiftClock(time.Duration) {}
