package watchdog

import "time"

// A skew is how far the wall clock and the boot clock have gone ahead of the monotonic clock since the watchdog's epoch.
type skew struct{ wall, boot time.Duration }

// skewNow measures the skew.
func (w *Watchdog) skewNow() skew {
	now := Now()
	gone := now.at.Sub(w.epoch.at)
	return skew{
		wall: now.at.Round(0).Sub(w.epoch.at.Round(0)) - gone,
		boot: now.boot - w.epoch.boot - gone,
	}
}

// ahead tells whether a clock has jumped forward, by more than a millisecond, since the skew was old.
func (s skew) ahead(old skew) bool {
	return s.wall-old.wall > time.Millisecond || s.boot-old.boot > time.Millisecond
}

// least returns the lesser skew of each clock.
func (s skew) least(other skew) skew { return skew{min(s.wall, other.wall), min(s.boot, other.boot)} }

// jumped tells whether a clock has jumped forward since jumped was called last. What looks like a jump is measured again: the
// goroutine may have been stopped between the readings of two clocks. With w.mu held.
func (w *Watchdog) jumped() bool {
	now := w.skewNow()
	for range 2 {
		if !now.ahead(w.skew) {
			break
		}
		now = now.least(w.skewNow())
	}
	if now.ahead(w.skew) {
		w.skew = now
		return true
	}
	w.skew = now.least(w.skew)
	return false
}

// afterJump takes the leases out of the calendar whose deadline has passed because a clock went forward, and appends them to due.
// With w.mu held.
func (w *Watchdog) afterJump(due []*Lease) []*Lease {
	now := Now()
	for _, l := range w.leases.all(nil) {
		if l.deadline.Load().passed(now) {
			w.leases.remove(l)
			due = append(due, l)
		}
	}
	return due
}
