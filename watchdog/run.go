package watchdog

import "time"

// run is the watchdog's goroutine. It takes the leases that are due, sends their renewals, and tells the owners of leases that are
// lost, until there is no lease.
func (w *Watchdog) run() {
	timer := time.NewTimer(patrol)
	defer timer.Stop()
	var due []*Lease
	for first := true; ; first = false {
		// The goroutine ends only after a sleep: if it ended whenever there is no lease, a new goroutine would be started for each
		// lease that comes and goes.
		slept := false
		if !first {
			select {
			case <-timer.C:
				slept = true
			case <-w.wake:
			}
		}
		w.mu.Lock()
		now := w.since(time.Now())
		due = w.leases.take(now, maxTake, due[:0])
		if w.jumped() {
			due = w.afterJump(due)
		}
		lost, settled := w.tick(due, now)
		if w.count == 0 && (slept || w.closed) {
			w.end()
			w.mu.Unlock()
			tell(lost, ErrExpired)
			return
		}
		w.queueSlow()
		w.launch()
		sleep := w.sleep(now)
		w.wakes = now + sleep.Milliseconds()
		w.mu.Unlock()
		tell(lost, ErrExpired)
		for _, l := range settled {
			l.Owner.Settled()
		}
		clear(due)
		timer.Reset(max(sleep, 1)) // the race detector breaks where two goroutines of a synctest bubble take timers of 0 at once
	}
}

// sleep returns how long the goroutine has nothing to do, patrol at most. With w.mu held.
func (w *Watchdog) sleep(now int64) time.Duration {
	sleep := patrol
	if first, any := w.leases.first(); any {
		sleep = min(sleep, time.Duration(first-now)*time.Millisecond)
	}
	if len(w.backlog.ready) > 0 {
		sleep = min(sleep, time.Until(w.backlog.turn))
	}
	if w.backlog.batches > 0 {
		sleep = min(sleep, 2*slow)
	}
	return sleep
}

// end is called when the goroutine ends because there is no lease. It empties the queues of the slots. With w.mu held.
func (w *Watchdog) end() {
	w.running, w.wakes = false, 0
	w.leases, w.backlog = calendar{}, backlog{flying: w.backlog.flying}
	for _, in := range w.queues { // the leases of the batches that wait in a queue were removed
		for !in.idle() {
			b := in.next()
			b.current(b.asked)
		}
		in.ready = false
		w.forget(in)
	}
}

// tick goes through leases that were taken out of the calendar because they are due. It puts their renewals in the queues and
// starts batches. It returns the leases whose deadline has passed, and those whose owners are to be told that they have settled. With
// w.mu held.
func (w *Watchdog) tick(due []*Lease, now int64) (lost, settled []*Lease) {
	var renew []Renewal
	instant := Now()
	for _, l := range due {
		d := l.deadline.Load()
		if d.passed(instant) || l.round(w.countOf(d.mono)) <= now {
			w.drop(l)
			lost = append(lost, l)
			continue
		}
		length := l.wanted()
		var renewal int64
		if length > 0 {
			renewal = w.renewal(l, length)
		}
		if l.settles != 0 && l.round(l.settles) <= now {
			if length == 0 || length/3 > SettleAfter {
				settled = append(settled, l)
			}
			l.settles = 0
		}
		if l.unanswered || length > 0 && (l.early || l.round(renewal) <= now) {
			renew = append(renew, Renewal{l.Owner, length, l})
		} else {
			w.scheduleFor(l, length)
		}
	}
	if len(renew) > 0 {
		w.send(renew)
	}
	return lost, settled
}

// tell calls Lost of the leases' owners. Without w.mu held.
func tell(leases []*Lease, err error) {
	for _, l := range leases {
		l.Owner.Lost(err)
	}
}
