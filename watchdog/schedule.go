package watchdog

import (
	"math/rand/v2"
	"time"
)

// schedule puts the lease into the calendar where it is next due: at its deadline, or for its renewal. A renewal is due when two
// thirds of the length that it asks for are left, or somewhat earlier where too many others are due then. A new lease is due after
// SettleAfter, if that comes before its renewal. With w.mu held, as for all functions of this file.
func (w *Watchdog) schedule(l *Lease) {
	d := l.deadline.Load()
	due := w.countOf(d.mono)
	if l.settles != 0 && l.settles <= due-d.length.Milliseconds()*2/3 {
		w.put(l, l.settles) // most leases are removed before then: the owners of the others are asked then whether to renew
		return
	}
	w.scheduleFor(l, l.wanted())
}

// wanted returns the length that the next renewal is to ask for; 0 where there is to be none, or one is under way.
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

// renewal returns when a renewal that asks for this length is due.
func (w *Watchdog) renewal(l *Lease, length time.Duration) int64 {
	return w.countOf(l.deadline.Load().mono + margin(length) - length*2/3)
}

// probes is how many random buckets spread looks at to find one with room. The emptier of two random buckets makes a nearly even
// spread; a few more make it more even.
const probes = 4

// overflow is the earlier bucket that takes the leases for which there was no room in their own bucket, one after the other. Leases
// that were taken together so stay together, which is how they lie in the memory of client and server.
type overflow struct {
	at   int64 // start of the bucket
	left int   // how many more leases go there
}

// spread returns when to renew a lease that is due at the latest at this time: at that time, or, where the bucket of that time
// is full, earlier by up to half of the time between two renewals. So leases that were taken at the same moment come to be
// renewed at different times, and stay there.
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
	if at := w.overflow.at; w.overflow.left > 0 && at >= soonest && at < due && at == l.round(at) {
		w.overflow.left--
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
	w.overflow = overflow{best, few - 1}
	return best
}

// few is the number of leases that a bucket may always have, and that overflow sends to one bucket: they are renewed together
// whatever else is due.
const few = 100

// full returns the number of leases from which on a bucket is full, a multiple of few: about a quarter more than the bucket would
// have if all leases were spread evenly over the time between two renewals.
func (w *Watchdog) full(l *Lease, length time.Duration) int {
	even := int64(w.count) * grain(l.deadline.Load().length) / max(length.Milliseconds()/3, 1)
	return few * (1 + int(even+even/4)/few)
}

// put puts the lease into the bucket of this time, and wakes the goroutine if it would look later than that.
func (w *Watchdog) put(l *Lease, due int64) {
	w.leases.add(l, due)
	l.early = false
	if l.bucket.at < w.wakes {
		w.nudge()
	}
}
