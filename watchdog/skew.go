package watchdog

import "time"

// skew is how far the other clocks have gone ahead of the monotonic one.
type skew struct{ wall, boot time.Duration }

func (w *Watchdog) skewNow() skew {
	now := Now()
	gone := now.at.Sub(w.epoch.at)
	return skew{
		wall: now.at.Round(0).Sub(w.epoch.at.Round(0)) - gone,
		boot: now.boot - w.epoch.boot - gone,
	}
}

// ahead tells whether a clock has jumped forward since old.
func (s skew) ahead(old skew) bool {
	return s.wall-old.wall > time.Millisecond || s.boot-old.boot > time.Millisecond
}

func (s skew) least(other skew) skew { return skew{min(s.wall, other.wall), min(s.boot, other.boot)} }

// jumped tells whether a clock has jumped forward since it was asked last. What looks like a jump is measured again: the
// goroutine may have been stopped between two readings.
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

// afterJump adds the leases to due that are over because a clock went forward.
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
