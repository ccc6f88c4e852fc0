// Package first has tests in virtual time for the program's own test.
package first

import (
	"testing"
	"testing/synctest"
)

// Which of two goroutines is first hangs on the schedule.
func TestFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		said := make(chan int, 2)
		go func() { said <- 1 }()
		go func() { said <- 2 }()
		if <-said != 2 {
			t.Error("the first one was first")
		}
	})
}
