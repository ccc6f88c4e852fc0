//go:build unix

package main

import (
	"testing"
	"time"
)

// While a machine is suspended the monotonic clock stands still, and the wall clock goes on: a command whose lease has ended meanwhile
// has no grace left.
func TestStoodStill(t *testing.T) {
	now := time.Now()
	s := &supervisor{}
	s.trust(now.Add(time.Minute))
	equal(t, "before the deadline", s.stoodStill(now), false)
	equal(t, "after it", s.stoodStill(now.Add(2*time.Minute)), true)
	suspended := now.Round(0).Add(2 * time.Minute) // the clock that people read, alone
	s.deadline = now.Add(3 * time.Minute)          // on the monotonic clock it is not over
	equal(t, "after a suspend", s.stoodStill(suspended), true)
}
