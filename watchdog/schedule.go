package watchdog

import (
	"math/rand/v2"
	"time"
)

// schedule puts the lease where it is next due: at its deadline, or for its renewal, when two thirds of what that asks
// for are left, or somewhat earlier where others are due then.
func (w *Watchdog) schedule(l *Lease) {
	d := l.deadline.Load()
	due := w.countOf(d.mono)
	if l.settles != 0 && l.settles <= due-d.length.Milliseconds()*2/3 {
		w.put(l, l.settles) // most are removed before: whoever lasts is asked then
		return
	}
	w.scheduleFor(l, l.wanted())
}

// wanted is what the next renewal is to ask for, if there is to be one.
func (l *Lease) wanted() time.Duration {
	if l.flying {
		return 0
	}
	return l.Owner.Renewal()
}

// scheduleFor is schedule of a lease whose next renewal is to ask for this length.
func (w *Watchdog) scheduleFor(l *Lease, length time.Duration) {
	due, early := w.countOf(l.deadline.Load().mono), false
	if length > 0 {
		renewal := w.renewal(l, length)
		at := w.spread(l, renewal, length)
		if at < due {
			due, early = at, at < l.round(renewal)
		}
	}
	if l.settles != 0 && l.settles <= due {
		due, early = l.settles, false
	}
	w.put(l, due)
	l.early = early
}

// renewal is when a renewal of this length is due.
func (w *Watchdog) renewal(l *Lease, length time.Duration) int64 {
	return w.countOf(l.deadline.Load().mono + margin(length) - length*2/3)
}

// probes is the number of buckets that are looked at for one with room. Two choices of the emptier one make a spread
// nearly even; a few more, evener.
const probes = 4

// aside is where the leases go for which there was no room in their own bucket, one after the other: those that were
// taken together stay together, which is how they lie in the memory of both sides.
type aside struct {
	at   int64 // a bucket
	left int   // how many more go there
}

// spread returns when to renew a lease that is due at the latest at this time: then, or, where the bucket of that time
// is full, up to half of the time between two renewals earlier. Leases that were taken at the same moment so come to be
// renewed at different ones, and stay there.
func (w *Watchdog) spread(l *Lease, due int64, length time.Duration) int64 {
	fewest, full := w.leases.crowd(l.round(due)), w.full(l, length)
	if fewest < full {
		return due
	}
	grain := grain(l.deadline.Load().length)
	soonest := max(due-length.Milliseconds()/6, w.since(time.Now())+grain)
	if soonest+grain > due {
		return due
	}
	if at := w.aside.at; w.aside.left > 0 && at >= soonest && at < due && at == l.round(at) {
		w.aside.left--
		return at
	}
	best := due
	for range probes {
		at := l.round(soonest + rand.Int64N(due-soonest))
		if n := w.leases.crowd(at); n < fewest && at >= soonest {
			best, fewest = at, n
		}
		if fewest < full {
			break
		}
	}
	w.aside = aside{best, few - 1}
	return best
}

// few is a number of leases that are renewed together whatever else is due.
const few = 100

// full is the number of leases from which on a bucket is full: somewhat more than would be there if all were spread
// evenly over the time between two renewals.
func (w *Watchdog) full(l *Lease, length time.Duration) int {
	even := int64(w.count) * grain(l.deadline.Load().length) / max(length.Milliseconds()/3, 1)
	return few * (1 + int(even+even/4)/few)
}

func (w *Watchdog) put(l *Lease, due int64) {
	w.leases.add(l, due)
	l.early = false
	if l.bucket.at < w.wakes {
		w.nudge()
	}
}
