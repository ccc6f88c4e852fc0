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
	// maxFlying bounds the batches of one slot that are under way, so that many leases that are due together do not all
	// reach the server at once. It is not for all slots together: where one node of a cluster hangs, the others' leases do
	// not stand behind it.
	maxFlying = 4
	// maxFlight bounds one attempt, so that after one that hangs there is time for others.
	maxFlight = 5 * time.Second
	// patrol is the longest that the goroutine sleeps: within it a clock that jumped is noticed, and a goroutine with
	// nothing left to do ends.
	patrol = time.Second
	// SettleAfter is when a lease is one of those that last. Most are gone long before.
	SettleAfter = time.Second
)

// Owner is who a lease is kept for.
type Owner interface {
	// Renewal is the length of the lease to ask for with the next renewal, 0 if it is not to be renewed. It is asked with
	// the watchdog's lock held: it must neither block nor call the watchdog.
	Renewal() time.Duration
	// Slot is the same for leases whose renewals may travel in one command. It is asked as Renewal is.
	Slot() uint16
	// Settled tells, once, that the lease has lasted for a while (SettleAfter), where the next renewal is not soon: its
	// owner may want to learn sooner that it is gone.
	Settled()
	// Lost tells that the lease is over: err is ErrExpired or ErrGone. Nothing is called after it.
	Lost(err error)
}

// A Renewal is one lease in a batch.
type Renewal struct {
	Owner  Owner
	Length time.Duration // what to ask for; a longer expiry must be kept. 0: only whether it is there

	lease *Lease
}

// Renew sends the renewals in one round trip and returns each one's outcome: nil, an error that is ErrGone, or why it
// is not known. It must return when ctx ends.
type Renew func(ctx context.Context, batch []Renewal) []error

// Lease is one lease under the watchdog. The zero value is ready for Add; it must not be copied.
type Lease struct {
	Owner Owner // set before Add

	deadline atomic.Pointer[Deadline]
	length   time.Duration // of what was promised last
	flying   bool          // a renewal is under way, or in line for a round trip
	kept     bool          // added and not removed
	settles  int64         // when the owner is to be told that it lasts; 0 once that was done

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
	epoch Instant
	wake  chan struct{}

	mu      sync.Mutex
	leases  calendar
	count   int
	lines   map[uint16]*line // by slot, the ones with something in them
	running bool
	closed  bool
	skew    skew // when last looked
	ctx     context.Context
	cancel  context.CancelFunc
}

// A line is the batches of one slot.
type line struct {
	waiting [][]*Lease
	flying  int
}

// New returns a watchdog that renews by this function. It starts no goroutine before the first Add.
func New(renew Renew) *Watchdog {
	w := &Watchdog{renew: renew, epoch: Now(), wake: make(chan struct{}, 1)}
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
	l.length, l.kept = length, true
	l.settles = w.since(sent.at.Add(SettleAfter))
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
		l.length = length
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
	w.leases, w.lines = calendar{}, nil
	w.nudge()
}

func (w *Watchdog) drop(l *Lease) {
	if !l.kept {
		return
	}
	l.kept = false
	w.count--
	w.leases.remove(l)
}

// since is a time in milliseconds on the watchdog's count, which no step of the wall clock moves.
func (w *Watchdog) since(t time.Time) int64 { return t.Sub(w.epoch.at).Milliseconds() }

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

// schedule puts the lease where it is next due: at its deadline, or for its renewal, when two thirds of what that asks
// for are left.
func (w *Watchdog) schedule(l *Lease) {
	due := w.since(l.deadline.Load().at)
	if renewal, any := w.renewal(l); any {
		due = min(due, renewal)
	}
	if l.settles != 0 {
		due = min(due, l.settles)
	}
	w.put(l, due)
}

// renewal is when the lease is to be renewed, if it is.
func (w *Watchdog) renewal(l *Lease) (due int64, any bool) {
	length := l.Owner.Renewal()
	if length == 0 || l.flying {
		return 0, false
	}
	return w.since(l.deadline.Load().at.Add(margin(length) - length*2/3)), true
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
		if skew := w.skewNow(); skew.ahead(w.skew) {
			due = w.afterJump(due)
			w.skew = skew
		} else {
			w.skew = skew.least(w.skew)
		}
		lost, settled := w.tick(due, now)
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
		for _, l := range settled {
			l.Owner.Settled()
		}
		clear(due)
		timer.Reset(sleep)
	}
}

// afterJump adds the leases to due that are over because a clock went forward.
func (w *Watchdog) afterJump(due []*Lease) []*Lease {
	for _, l := range w.leases.all(nil) {
		if l.Passed() {
			w.leases.remove(l)
			due = append(due, l)
		}
	}
	return due
}

// tick goes through leases that were taken out of the calendar because they are due. It sends renewals, and returns the
// leases whose time is over, and those that have settled.
func (w *Watchdog) tick(due []*Lease, now int64) (lost, settled []*Lease) {
	var renew []*Lease
	for _, l := range due {
		if l.Passed() || l.round(w.since(l.deadline.Load().at)) <= now {
			w.drop(l)
			lost = append(lost, l)
			continue
		}
		renewal, any := w.renewal(l)
		if l.settles != 0 && l.round(l.settles) <= now {
			if !any || renewal-now > SettleAfter.Milliseconds() {
				settled = append(settled, l)
			}
			l.settles = 0
		}
		if any && l.round(renewal) <= now {
			renew = append(renew, l)
		} else {
			w.schedule(l)
		}
	}
	w.send(renew)
	return lost, settled
}

func tell(leases []*Lease, err error) {
	for _, l := range leases {
		l.Owner.Lost(err)
	}
}

// send puts the renewals of the leases in line, in batches by slot. Meanwhile each lease is due at its deadline.
func (w *Watchdog) send(leases []*Lease) {
	slots := make(map[uint16]struct{})
	for _, l := range leases {
		l.flying = true
		w.leases.remove(l)
		w.put(l, w.since(l.deadline.Load().at))
		slot := l.Owner.Slot()
		slots[slot] = struct{}{}
		in := w.lines[slot]
		if in == nil {
			if w.lines == nil {
				w.lines = make(map[uint16]*line)
			}
			in = &line{}
			w.lines[slot] = in
		}
		if n := len(in.waiting); n == 0 || len(in.waiting[n-1]) == maxBatch {
			in.waiting = append(in.waiting, nil)
		}
		last := &in.waiting[len(in.waiting)-1]
		*last = append(*last, l)
	}
	for slot := range slots {
		w.launch(slot)
	}
}

// launch starts as many batches of the slot as may be under way.
func (w *Watchdog) launch(slot uint16) {
	in := w.lines[slot]
	if in == nil {
		return
	}
	for in.flying < maxFlying && len(in.waiting) > 0 {
		var batch []Renewal
		timeout := maxFlight
		for _, l := range in.waiting[0] {
			if !l.kept {
				l.flying = false
				continue
			}
			length := l.Owner.Renewal()
			batch = append(batch, Renewal{l.Owner, length, l})
			if length == 0 {
				length = l.length
			}
			timeout = min(timeout, length/3)
		}
		in.waiting = in.waiting[1:]
		if len(batch) > 0 {
			in.flying++
			go w.fly(slot, batch, timeout)
		}
	}
	if in.flying == 0 {
		delete(w.lines, slot)
	}
}

func (w *Watchdog) fly(slot uint16, batch []Renewal, timeout time.Duration) {
	ctx, cancel := context.WithTimeout(w.ctx, timeout)
	defer cancel()
	sent := Now()
	outcome := w.renew(ctx, batch)

	var lost []*Lease
	w.mu.Lock()
	if in := w.lines[slot]; in != nil {
		in.flying--
	}
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
		case outcome[i] != nil && r.Length > 0:
			soon := w.since(time.Now()) + max(r.Length.Milliseconds()/30, 2*l.grain())
			w.put(l, min(soon, w.since(l.deadline.Load().at)))
		default:
			if d := DeadlineOf(sent, r.Length); outcome[i] == nil && d.After(*l.deadline.Load()) {
				l.deadline.Store(&d)
				l.length = r.Length
			}
			w.schedule(l)
		}
	}
	w.launch(slot)
	w.mu.Unlock()
	tell(lost, ErrGone)
}
