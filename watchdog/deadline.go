package watchdog

import "time"

// Instant is one moment on every clock that a deadline is checked against.
type Instant struct {
	at   time.Time     // wall and monotonic
	boot time.Duration // counts through a suspend; 0 where there is no such clock
}

// Now returns the present instant.
func Now() Instant { return Instant{time.Now(), bootClock()} }

// Time returns the instant as an ordinary time.
func (i Instant) Time() time.Time { return i.at }

// Deadline is the end of the trust in a lease.
type Deadline struct {
	at   time.Time
	boot time.Duration
	sent time.Time // of the command that it counts from
}

// DeadlineOf returns the deadline of a lease of this length that was asked for at sent: sent + length - margin, where
// margin is 1 ms + length/100.
func DeadlineOf(sent Instant, length time.Duration) Deadline {
	trust := length - margin(length)
	d := Deadline{at: sent.at.Add(trust), sent: sent.at}
	if sent.boot != 0 {
		d.boot = sent.boot + trust
	}
	return d
}

// margin is for a server clock that runs faster than ours, and for rounding.
func margin(length time.Duration) time.Duration { return time.Millisecond + length/100 }

// Time returns the deadline on the wall clock, with the monotonic reading beside it.
func (d Deadline) Time() time.Time { return d.at }

// Age is how long ago the command was sent that the deadline counts from.
func (d Deadline) Age() time.Duration { return time.Since(d.sent) }

// After tells whether d is later than other.
func (d Deadline) After(other Deadline) bool { return d.at.After(other.at) }

// Passed tells whether the deadline has passed on any of the clocks.
func (d Deadline) Passed() bool {
	now := time.Now()
	return !now.Before(d.at) || // the monotonic clock
		now.UnixNano() >= d.at.UnixNano() || // the wall clock
		d.boot != 0 && bootClock() >= d.boot
}
