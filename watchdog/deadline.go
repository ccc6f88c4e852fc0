package watchdog

import (
	"time"

	"github.com/fencelock/fencelock/internal/test/virtualtime"
)

// Instant is one moment, as each clock that a deadline is checked against shows it.
type Instant struct {
	at   time.Time     // wall and monotonic
	boot time.Duration // counts through a suspend; 0 where there is no such clock
}

// Now returns the present instant.
func Now() Instant {
	if virtualtime.Is() {
		return Instant{at: time.Now()}
	}
	return Instant{time.Now(), bootClock()}
}

// Age returns how long ago the instant was, by the monotonic clock.
func (i Instant) Age() time.Duration { return time.Since(i.at) }

// Time returns the instant as an ordinary time.
func (i Instant) Time() time.Time { return i.at }

// Deadline is the end of the trust in a lease: one moment, as each clock will show it. A Deadline is small and points to nothing,
// because each lease may have one of its own.
type Deadline struct {
	mono   time.Duration // on the monotonic clock, since start
	wall   int64         // Unix time in nanoseconds
	boot   time.Duration // 0 where there is no such clock
	length time.Duration // of the lease
}

// start is the time that monotonic times are counted from.
var start = time.Now()

// DeadlineOf returns the deadline of a lease of this length that was asked for at sent: sent + length - margin, where
// margin is 1 ms + length/100.
func DeadlineOf(sent Instant, length time.Duration) Deadline {
	trust := length - margin(length)
	at := sent.at.Add(trust)
	d := Deadline{mono: at.Sub(start), wall: at.UnixNano(), length: length}
	if sent.boot != 0 {
		d.boot = sent.boot + trust
	}
	return d
}

// margin returns how much earlier than its length the trust in a lease ends: for a server clock that runs faster than ours, and for
// the rounding to milliseconds.
func margin(length time.Duration) time.Duration { return time.Millisecond + length/100 }

// Time returns the deadline as an ordinary time.
func (d Deadline) Time() time.Time { return start.Add(d.mono) }

// Left returns for how long Redis keeps the lease from now on, at most, by the monotonic clock.
func (d Deadline) Left() time.Duration { return time.Until(d.Time().Add(margin(d.length))) }

// Age returns how long ago the command was sent that the deadline counts from.
func (d Deadline) Age() time.Duration {
	return time.Since(d.Time().Add(margin(d.length) - d.length))
}

// After tells whether d is later than other, by the monotonic clock.
func (d Deadline) After(other Deadline) bool { return d.mono > other.mono }

// Passed tells whether the deadline has passed on any of the clocks.
func (d Deadline) Passed() bool {
	now := time.Now()
	return d.passed(Instant{at: now}) || d.boot != 0 && bootClock() >= d.boot
}

// passed tells whether the deadline had passed at this instant on any of the clocks.
func (d Deadline) passed(now Instant) bool {
	return now.at.Sub(start) >= d.mono || now.at.UnixNano() >= d.wall || d.boot != 0 && now.boot >= d.boot
}
