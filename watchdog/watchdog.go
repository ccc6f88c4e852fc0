package watchdog

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

var (
	// ErrGone is what a renewal says that found the lease gone.
	ErrGone = errors.New("the lease is gone")
	// ErrExpired tells that the deadline passed without a renewal that was confirmed in time.
	ErrExpired = errors.New("the lease ran out")
)

const (
	// maxBatch bounds the renewals in one round trip: a hundred hold the server for about as long as five single
	// commands of it, and an answer that does not come leaves no more than these in doubt.
	maxBatch = 100
	// maxFlying bounds the batches under way, so that a server that hangs does not collect goroutines, and others in a
	// cluster are still renewed.
	maxFlying = 16
	// patrol is the longest that the goroutine sleeps: within it a clock that jumped is noticed, and a goroutine with
	// nothing left to do ends.
	patrol = time.Second
)

// Owner is who a lease is kept for.
type Owner interface {
	// Renewal is the length of the lease to ask for with the next renewal, 0 if it is not to be renewed. It is asked with
	// the watchdog's lock held: it must neither block nor call the watchdog.
	Renewal() time.Duration
	// Slot is the same for leases whose renewals may travel in one command. It is asked as Renewal is.
	Slot() uint16
	// Lost tells that the lease is over: err is ErrExpired or ErrGone. Nothing is called after it.
	Lost(err error)
}

// A Renewal is one lease in a batch.
type Renewal struct {
	Owner  Owner
	Length time.Duration // what to ask for; a longer expiry must be kept

	lease *Lease
}

// Renew sends the renewals in one round trip and returns each one's outcome: nil, an error that is ErrGone, or why it
// is not known. It must return when ctx ends.
type Renew func(ctx context.Context, batch []Renewal) []error

// Lease is one lease under the watchdog. The zero value is ready for Add; it must not be copied.
type Lease struct {
	Owner Owner // set before Add

	deadline atomic.Pointer[Deadline]
	length   time.Duration
	expiry   int64 // when what was promised is over, without the margin
	flying   bool  // a renewal is under way, or in line for a round trip
	kept     bool  // added and not removed

	bucket     *bucket
	prev, next *Lease
}

// Passed tells, by the clocks alone, whether the lease can no longer be trusted.
func (l *Lease) Passed() bool {
	d := l.deadline.Load()
	return d != nil && d.Passed()
}

// Deadline returns the end of the trust in the lease.
func (l *Lease) Deadline() Deadline {
	if d := l.deadline.Load(); d != nil {
		return *d
	}
	return Deadline{}
}

// Watchdog keeps leases. Create it with New.
type Watchdog struct {
	renew Renew
	epoch time.Time
	wake  chan struct{}

	mu      sync.Mutex
	leases  calendar
	count   int
	line    [][]*Lease // batches in line for a round trip
	flying  int
	running bool
	closed  bool
	skew    time.Duration // of the wall clock against the monotonic one, when last looked
	ctx     context.Context
	cancel  context.CancelFunc
}

// New returns a watchdog that renews by this function. It starts no goroutine before the first Add.
func New(renew Renew) *Watchdog {
	w := &Watchdog{renew: renew, epoch: time.Now(), wake: make(chan struct{}, 1)}
	w.ctx, w.cancel = context.WithCancel(context.Background())
	return w
}

// Add takes a lease that was confirmed by a command sent at sent.
func (w *Watchdog) Add(l *Lease, sent Instant, length time.Duration) {
	d := DeadlineOf(sent, length)
	l.deadline.Store(&d)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return
	}
	l.length, l.expiry, l.kept = length, w.since(sent.at.Add(length)), true
	w.count++
	w.schedule(l)
	if !w.running {
		w.running = true
		w.skew = w.skewNow()
		go w.run()
	}
}

// Extend takes a later confirmation of the lease, by a command sent at sent that asked for length. It never brings the
// deadline nearer.
func (w *Watchdog) Extend(l *Lease, sent Instant, length time.Duration) {
	d := DeadlineOf(sent, length)
	w.mu.Lock()
	defer w.mu.Unlock()
	if !l.kept {
		return
	}
	if d.After(*l.deadline.Load()) {
		l.deadline.Store(&d)
		l.length, l.expiry = length, w.since(sent.at.Add(length))
	}
	if !l.flying {
		w.leases.remove(l)
		w.schedule(l)
	}
}

// Ask sends a renewal now, to learn whether the lease is still there. One that is not to be renewed is not extended.
func (w *Watchdog) Ask(l *Lease) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if l.kept && !l.flying {
		w.send([]*Lease{l})
	}
}

// Remove forgets the lease. A renewal that is under way changes nothing any more.
func (w *Watchdog) Remove(l *Lease) {
	w.mu.Lock()
	w.drop(l)
	w.mu.Unlock()
}

// Close ends all renewals and forgets the leases; their owners are not told.
func (w *Watchdog) Close() {
	w.cancel()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	for _, l := range w.leases.all(nil) {
		w.drop(l)
	}
	w.leases, w.line = calendar{}, nil
	w.nudge()
}

func (w *Watchdog) drop(l *Lease) bool {
	if !l.kept {
		return false
	}
	l.kept = false
	w.count--
	w.leases.remove(l)
	return true
}

// since is a time in milliseconds on the watchdog's count, which no step of the wall clock moves.
func (w *Watchdog) since(t time.Time) int64 { return t.Sub(w.epoch).Milliseconds() }

func (w *Watchdog) skewNow() time.Duration {
	now := time.Now()
	return now.Round(0).Sub(w.epoch.Round(0)) - now.Sub(w.epoch)
}

// schedule puts the lease where it is next due: at its deadline, or for its renewal, when a third of what that asks for
// has gone.
func (w *Watchdog) schedule(l *Lease) {
	due := w.since(l.deadline.Load().at)
	if length := l.Owner.Renewal(); length > 0 && !l.flying {
		due = min(due, l.expiry-length.Milliseconds()*2/3)
	}
	w.put(l, due)
}

func (w *Watchdog) put(l *Lease, due int64) {
	first, any := w.leases.first()
	w.leases.add(l, due)
	if !any || l.bucket.at < first {
		w.nudge()
	}
}

// nudge makes the goroutine look at the calendar again.
func (w *Watchdog) nudge() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

func (w *Watchdog) run() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	var due []*Lease
	for {
		select {
		case <-timer.C:
		case <-w.wake:
		}
		w.mu.Lock()
		now := w.since(time.Now())
		due = w.leases.take(now, due[:0])
		if skew := w.skewNow(); skew-w.skew > time.Millisecond {
			due = w.afterJump(due)
			w.skew = skew
		} else {
			w.skew = min(skew, w.skew)
		}
		lost := w.tick(due, now)
		if w.count == 0 {
			w.running = false
			w.leases = calendar{}
			w.mu.Unlock()
			tell(lost, ErrExpired)
			return
		}
		sleep := patrol
		if first, any := w.leases.first(); any {
			sleep = min(sleep, time.Duration(first-now)*time.Millisecond)
		}
		w.mu.Unlock()
		tell(lost, ErrExpired)
		clear(due)
		timer.Reset(sleep)
	}
}

// afterJump adds the leases to due that are over because the wall clock went forward.
func (w *Watchdog) afterJump(due []*Lease) []*Lease {
	for _, l := range w.leases.all(nil) {
		if l.Passed() {
			w.leases.remove(l)
			due = append(due, l)
		}
	}
	return due
}

// tick goes through leases that were taken out of the calendar because they are due. It sends renewals and returns the
// leases whose time is over.
func (w *Watchdog) tick(due []*Lease, now int64) (lost []*Lease) {
	var renew []*Lease
	for _, l := range due {
		switch {
		case l.Passed() || l.round(w.since(l.deadline.Load().at)) <= now:
			w.drop(l)
			lost = append(lost, l)
		case !l.flying && l.Owner.Renewal() > 0:
			renew = append(renew, l)
		default:
			w.put(l, w.since(l.deadline.Load().at))
		}
	}
	w.send(renew)
	return lost
}

func tell(leases []*Lease, err error) {
	for _, l := range leases {
		l.Owner.Lost(err)
	}
}

// send puts the renewals of the leases in line, in batches by slot. Meanwhile each lease is due at its deadline.
func (w *Watchdog) send(leases []*Lease) {
	batches := make(map[uint16][]*Lease)
	for _, l := range leases {
		l.flying = true
		w.leases.remove(l)
		w.put(l, w.since(l.deadline.Load().at))
		slot := l.Owner.Slot()
		batches[slot] = append(batches[slot], l)
		if len(batches[slot]) == maxBatch {
			w.line = append(w.line, batches[slot])
			delete(batches, slot)
		}
	}
	for _, batch := range batches {
		w.line = append(w.line, batch)
	}
	w.launch()
}

// launch starts as many batches as may be under way.
func (w *Watchdog) launch() {
	for w.flying < maxFlying && len(w.line) > 0 {
		var batch []Renewal
		timeout := time.Duration(1<<63 - 1)
		for _, l := range w.line[0] {
			if !l.kept {
				l.flying = false
				continue
			}
			r := Renewal{l.Owner, max(l.Owner.Renewal(), time.Millisecond), l}
			timeout = min(timeout, l.length)
			batch = append(batch, r)
		}
		w.line = w.line[1:]
		if len(batch) == 0 {
			continue
		}
		w.flying++
		go w.fly(batch, timeout/3) // one that hangs makes room for the next: there are three within a lease
	}
	if len(w.line) == 0 {
		w.line = nil
	}
}

func (w *Watchdog) fly(batch []Renewal, timeout time.Duration) {
	ctx, cancel := context.WithTimeout(w.ctx, timeout)
	defer cancel()
	sent := Now()
	outcome := w.renew(ctx, batch)

	var lost []*Lease
	w.mu.Lock()
	w.flying--
	for i, r := range batch {
		l := r.lease
		l.flying = false
		if !l.kept {
			continue
		}
		w.leases.remove(l)
		switch {
		case errors.Is(outcome[i], ErrGone):
			w.drop(l)
			lost = append(lost, l)
		case outcome[i] != nil:
			soon := w.since(time.Now()) + max(l.length.Milliseconds()/30, 2*grain(l.length))
			w.put(l, min(soon, w.since(l.deadline.Load().at)))
		default:
			if d := DeadlineOf(sent, r.Length); d.After(*l.deadline.Load()) {
				l.deadline.Store(&d)
				l.length, l.expiry = r.Length, w.since(sent.at.Add(r.Length))
			}
			w.schedule(l)
		}
	}
	w.launch()
	w.mu.Unlock()
	tell(lost, ErrGone)
}
