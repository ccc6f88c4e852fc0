package watchdog

import (
	"context"
	"errors"
	"time"
)

// A slotQueue has the batches of one slot. The watchdog's lock guards it, the batches and the backlog.
type slotQueue struct {
	slot    uint16
	short   []batch   // of leases of less than a second: they go first
	waiting []batch   // of all other leases
	flying  int       // how many batches are under way
	last    time.Time // when a batch was started last
	ready   bool      // the queue may start a batch: it is in backlog.ready
}

// A batch is renewals that travel in one round trip.
type batch struct {
	renewals []Renewal
	asked    time.Time // when the owner of the first renewal was asked for its length
}

// A backlog is the batches of all slots that have not been started, and the number of those that are under way.
type backlog struct {
	batches int           // how many batches wait
	flying  int           // how many batches are under way
	ready   []*slotQueue  // the queues that may start a batch, in this order
	turn    time.Time     // when the next batch may start
	over    time.Duration // the earliest deadline of the leases whose batches wait, on the monotonic clock from start
}

// send puts the renewals into the queues of their slots, and starts the batches whose turn it is. Until a renewal has its outcome
// its lease is due at its deadline. With w.mu held.
func (w *Watchdog) send(renewals []Renewal) {
	now := time.Now()
	for _, r := range renewals {
		l := r.lease
		l.flying = true
		w.leases.remove(l)
		d := l.deadline.Load()
		w.put(l, w.countOf(d.mono))
		if w.backlog.batches == 0 || d.mono < w.backlog.over {
			w.backlog.over = d.mono
		}
		w.queueOf(r.Owner.Slot()).append(w, r, now)
	}
	w.launch()
}

// queueOf returns the queue of the slot, and makes it if need be.
func (w *Watchdog) queueOf(slot uint16) *slotQueue {
	in := w.queues[slot]
	if in == nil {
		if w.queues == nil {
			w.queues = make(map[uint16]*slotQueue)
		}
		in = &slotQueue{slot: slot}
		w.queues[slot] = in
	}
	return in
}

// append puts a renewal into the last batch of the queue, or into a new one where that is full. A new batch of short leases ends the
// pause between two batches.
func (in *slotQueue) append(w *Watchdog, r Renewal, now time.Time) {
	to := &in.waiting
	if grain(r.lease.deadline.Load().length) == 1 {
		to = &in.short
	}
	n := len(*to)
	if n == 0 || len((*to)[n-1].renewals) == maxBatch {
		*to = append(*to, batch{asked: now})
		n++
		w.backlog.batches++
		if to == &in.short {
			w.backlog.turn = now
		}
		w.queue(in, now)
	}
	last := &(*to)[n-1]
	last.renewals = append(last.renewals, r)
}

// idle tells whether no batch waits.
func (in *slotQueue) idle() bool { return len(in.waiting)+len(in.short) == 0 }

// next removes and returns the batch whose turn it is.
func (in *slotQueue) next() batch {
	from := &in.waiting
	if len(in.short) > 0 {
		from = &in.short
	}
	b := (*from)[0]
	*from = (*from)[1:]
	return b
}

// queue puts the slot's queue into backlog.ready if it may start a batch: one waits, and fewer than usual are under way, or fewer
// than maxFlying where they take long.
func (w *Watchdog) queue(in *slotQueue, now time.Time) {
	if in.ready || in.idle() || in.flying >= maxFlying {
		return
	}
	if in.flying < usual || now.Sub(in.last) > slow {
		in.ready = true
		w.backlog.ready = append(w.backlog.ready, in)
	}
}

// queueSlow calls queue for all slots, for those whose batches have begun to take long.
func (w *Watchdog) queueSlow() {
	if w.backlog.batches == 0 {
		return
	}
	now := time.Now()
	for _, in := range w.queues {
		w.queue(in, now)
	}
}

// launch starts the batches whose turn it is, each on a goroutine of its own. With w.mu held.
func (w *Watchdog) launch() {
	now := time.Now()
	for p := &w.backlog; len(p.ready) > 0 && !now.Before(p.turn); {
		in := p.ready[0]
		p.ready, in.ready = p.ready[1:], false
		p.batches--
		if renewals := in.next().current(now); len(renewals) > 0 {
			in.flying++
			p.flying++
			in.last = now
			p.turn = now.Add(p.gap(now, len(renewals)))
			go w.fly(in, renewals)
		}
		w.queue(in, now)
		w.forget(in)
	}
}

// forget deletes a slot's queue that has no batch, waiting or under way.
func (w *Watchdog) forget(in *slotQueue) {
	if in.flying == 0 && in.idle() {
		delete(w.queues, in.slot)
	}
}

// gap returns the time from a batch of this size that is started now to the next one. Few batches follow each other at once: a server
// that is woken once for all of them works less. Where many large ones wait, as after an outage, or many are under way, as those of many
// slots, there is a pause between two, as long as all batches are under way within a quarter of the time that is left to the first
// deadline.
func (p *backlog) gap(now time.Time, size int) time.Duration {
	if (p.batches < large || size < maxBatch/2) && p.flying < large {
		return 0
	}
	left := p.over - now.Sub(start)
	return max(min(batchPause, left/4/time.Duration(max(p.batches, 1))), 0)
}

// askAgain is how long a batch may wait; after that the owners are asked again whether they want its renewals. It is also the time after which
// a question to the server that got no answer is asked again.
const askAgain = time.Second

// current returns the renewals of the batch whose leases are still kept. Where the batch has waited for longer than askAgain the
// owners are asked for the lengths again. A renewal with length 0 then travels all the same: it asks only whether the lease is
// there.
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

// timeout returns the time for one round trip: a third of the shortest lease in it, and maxFlight at most.
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

// fly sends a batch, waits for its answer, and gives each lease its new deadline, the time of its next attempt, or its end.
func (w *Watchdog) fly(in *slotQueue, renewals []Renewal) {
	ctx, cancel := context.WithTimeout(w.ctx, timeout(renewals))
	sent := Now()
	outcome := w.renew(ctx, renewals)
	cancel()

	var lost []*Lease
	w.mu.Lock()
	now := time.Now()
	var renewed *Deadline // shared by the leases with the same length
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
		l.unanswered = false
		switch {
		case errors.Is(err, ErrGone):
			w.drop(l)
			lost = append(lost, l)
		case r.Length == 0 && err != nil:
			l.unanswered = true
			w.put(l, min(w.since(now)+askAgain.Milliseconds(), w.countOf(l.deadline.Load().mono)))
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
	w.backlog.flying--
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
