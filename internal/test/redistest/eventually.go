package redistest

import (
	"fmt"
	"time"

	"github.com/fencelock/fencelock/internal/test/realtime"
)

// Eventually calls cond every millisecond until it reports true. If it does not
// within the given time, or what [Bound] makes of that, the test ends with the
// message. Call it from the test's own goroutine.
func Eventually(t Owner, within time.Duration, cond func() bool, format string, args ...any) {
	t.Helper()
	if !poll(within, cond) {
		t.Fatalf("%snot within %v: %s", realtime.Bound(), within, fmt.Sprintf(format, args...))
	}
}

// Settles is [Eventually] for what takes seconds and is much work to ask for: it
// calls cond 30 times a second.
func Settles(t Owner, within time.Duration, cond func() bool, format string, args ...any) {
	t.Helper()
	Eventually(t, within, func() bool {
		if cond() {
			return true
		}
		time.Sleep(30 * time.Millisecond)
		return false
	}, format, args...)
}

// Await returns what comes over the channel. If nothing does within the given
// time, or what [Bound] makes of that, the test ends with the message. Call it
// from the test's own goroutine.
func Await[T any](t Owner, within time.Duration, ch <-chan T, format string, args ...any) T {
	t.Helper()
	began := time.Now()
	for {
		left := time.Until(began.Add(Bound(began, within)))
		select {
		case v := <-ch:
			return v
		case <-time.After(left):
		}
		if left <= 0 {
			break
		}
	}
	select {
	case v := <-ch:
		return v
	default:
	}
	t.Fatalf("%snot within %v: %s", realtime.Bound(), within, fmt.Sprintf(format, args...))
	panic("not reached")
}

// poll calls cond again and again until it reports true or the time is over,
// and at least once after the time is over: every millisecond at first, less
// often the longer it waits.
func poll(within time.Duration, cond func() bool) bool {
	began := time.Now()
	for {
		last := time.Since(began) >= Bound(began, within)
		if cond() {
			return true
		}
		if last {
			return false
		}
		time.Sleep(min(max(time.Millisecond, time.Since(began)/20), 50*time.Millisecond))
	}
}
