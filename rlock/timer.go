package rlock

import (
	"sync"
	"time"
)

// timers are ones that are not running. Most are stopped soon after they were started: nearly all calls are answered.
var timers = sync.Pool{New: func() any {
	t := time.NewTimer(time.Hour)
	t.Stop()
	return t
}}

// startTimer returns a running timer, to be given back by stopTimer.
func startTimer(d time.Duration) *time.Timer {
	t := timers.Get().(*time.Timer)
	t.Reset(d)
	return t
}

func stopTimer(t *time.Timer) {
	t.Stop()
	timers.Put(t)
}
