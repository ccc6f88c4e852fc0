package watchdog

import (
	"context"
	"errors"
	"time"
)

// A line is the batches of one slot.
type line struct {
	slot    uint16
	short   []batch // of short leases: they go first
	waiting []batch
	flying  int
	last    time.Time // when a batch was started last
	ready   bool      // to start a batch: it is in pile.ready
}

// A batch is renewals that travel in one round trip.
type batch struct {
	renewals []Renewal
	asked    time.Time // when its first one's owner was
}

// A pile is the batches of all lines that have not been started.
type pile struct {
	batches int
	ready   []*line       // whose turn comes next, in this order
	turn    time.Time     // of the next batch
	over    time.Duration // the earliest deadline of a lease among them
}

// send puts the renewals of the leases in line, in batches by slot. Meanwhile each lease is due at its deadline.
func (w *Watchdog) send(renewals []Renewal) {
	now := time.Now()
	for _, r := range renewals {
		l := r.lease
		l.flying = true
		w.leases.remove(l)
		d := l.deadline.Load()
		w.put(l, w.countOf(d.mono))
		if w.pile.batches == 0 || d.mono < w.pile.over {
			w.pile.over = d.mono
		}
		w.line(r.Owner.Slot()).append(w, r, now)
	}
	w.launch()
}

// line returns the line of the slot.
func (w *Watchdog) line(slot uint16) *line {
	in := w.lines[slot]
	if in == nil {
		if w.lines == nil {
			w.lines = make(map[uint16]*line)
		}
		in = &line{slot: slot}
		w.lines[slot] = in
	}
	return in
}

func (in *line) append(w *Watchdog, r Renewal, now time.Time) {
	to := &in.waiting
	if grain(r.lease.deadline.Load().length) == 1 {
		to = &in.short
	}
	n := len(*to)
	if n == 0 || len((*to)[n-1].renewals) == maxBatch {
		*to = append(*to, batch{asked: now})
		n++
		w.pile.batches++
		if to == &in.short {
			w.pile.turn = now
		}
		w.queue(in, now)
	}
	last := &(*to)[n-1]
	last.renewals = append(last.renewals, r)
}

// idle tells that no batch waits.
func (in *line) idle() bool { return len(in.waiting)+len(in.short) == 0 }

// next takes the batch whose turn it is.
func (in *line) next() batch {
	from := &in.waiting
	if len(in.short) > 0 {
		from = &in.short
	}
	b := (*from)[0]
	*from = (*from)[1:]
	return b
}

// queue notes that the line may start a batch, if it may.
func (w *Watchdog) queue(in *line, now time.Time) {
	if in.ready || in.idle() || in.flying >= maxFlying {
		return
	}
	if in.flying < usual || now.Sub(in.last) > slow {
		in.ready = true
		w.pile.ready = append(w.pile.ready, in)
	}
}

// queueSlow is queue for the lines whose batches take long.
func (w *Watchdog) queueSlow() {
	if w.pile.batches == 0 {
		return
	}
	now := time.Now()
	for _, in := range w.lines {
		w.queue(in, now)
	}
}

// launch starts the batches whose turn it is.
func (w *Watchdog) launch() {
	now := time.Now()
	for p := &w.pile; len(p.ready) > 0 && !now.Before(p.turn); {
		in := p.ready[0]
		p.ready, in.ready = p.ready[1:], false
		p.batches--
		if renewals := in.next().current(now); len(renewals) > 0 {
			in.flying++
			in.last = now
			p.turn = now.Add(p.gap(now))
			go w.fly(in, renewals)
		}
		w.queue(in, now)
		w.forget(in)
	}
}

// forget drops a line with nothing in it.
func (w *Watchdog) forget(in *line) {
	if in.flying == 0 && in.idle() {
		delete(w.lines, in.slot)
	}
}

// gap is the time from a batch that is started now to the next one. Few follow at once: a server that is woken once for
// them works less. In a large pile, as after an outage, there is a breath between them, as long as they all are under way
// within a quarter of the time that is left.
func (p *pile) gap(now time.Time) time.Duration {
	if p.batches < large {
		return 0
	}
	left := p.over - now.Sub(start)
	return max(min(breath, left/4/time.Duration(p.batches)), 0)
}

// askAgain is how long a batch may wait before the owners are asked again whether they want its renewals.
const askAgain = time.Second

// current returns the renewals of the batch that are still wanted.
func (b batch) current(now time.Time) []Renewal {
	again := now.Sub(b.asked) > askAgain
	kept := b.renewals[:0]
	for _, r := range b.renewals {
		if !r.lease.kept {
			r.lease.flying = false
			continue
		}
		if again {
			r.Length = r.Owner.Renewal()
		}
		kept = append(kept, r)
	}
	return kept
}

// timeout bounds one attempt by a third of the shortest lease in it.
func timeout(renewals []Renewal) time.Duration {
	t := maxFlight
	for _, r := range renewals {
		length := r.Length
		if length == 0 {
			length = r.lease.deadline.Load().length
		}
		t = min(t, length/3)
	}
	return t
}

func (w *Watchdog) fly(in *line, renewals []Renewal) {
	ctx, cancel := context.WithTimeout(w.ctx, timeout(renewals))
	sent := Now()
	outcome := w.renew(ctx, renewals)
	cancel()

	var lost []*Lease
	w.mu.Lock()
	now := time.Now()
	var renewed *Deadline // of those with the same length
	for i, r := range renewals {
		l := r.lease
		l.flying = false
		if !l.kept {
			continue
		}
		var err error
		if outcome != nil {
			err = outcome[i]
		}
		w.leases.remove(l)
		switch {
		case errors.Is(err, ErrGone):
			w.drop(l)
			lost = append(lost, l)
		case r.Length == 0:
			w.schedule(l)
		case err != nil:
			soon := w.since(now) + max(r.Length.Milliseconds()/30, 2*grain(l.deadline.Load().length))
			w.put(l, min(soon, w.countOf(l.deadline.Load().mono)))
		default:
			if renewed == nil || renewed.length != r.Length {
				d := DeadlineOf(sent, r.Length)
				renewed = &d
			}
			if renewed.After(*l.deadline.Load()) {
				l.deadline.Store(renewed)
			}
			w.scheduleFor(l, r.Length)
		}
	}
	in.flying--
	blocked := !in.ready
	w.queue(in, now)
	w.forget(in)
	w.launch()
	if blocked && in.ready {
		w.nudge()
	}
	w.mu.Unlock()
	tell(lost, ErrGone)
}
