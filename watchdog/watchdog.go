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
	// maxBatch bounds the renewals in one round trip: they travel together as scripts of a hundred, and an answer that
	// does not come leaves no more than these in doubt.
	maxBatch = 500
	// usual is how many batches of one slot are under way at a time: while the server works on one, the next one is on its
	// way. It is not for all slots together: where one node of a cluster hangs, the others' leases do not stand behind it.
	usual = 2
	// maxFlying bounds them where they take longer than slow.
	maxFlying = 4
	slow      = 50 * time.Millisecond
	// large is the number of waiting batches from which on there is a breath between two: time in which the server works
	// for others.
	large  = 4000 / maxBatch
	breath = maxBatch * 5 * time.Microsecond
	// maxTake bounds the leases that are looked at in one go, so that Add and Remove never wait for long.
	maxTake = 1000
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
	// Settled tells, once, that the lease has lasted for a while (SettleAfter), where its renewals are further apart than
	// that, or there are none: its owner may want to learn sooner that it is gone.
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
// is not known; none at all where all is well. It must return when ctx ends.
type Renew func(ctx context.Context, batch []Renewal) []error

// Lease is one lease under the watchdog. The zero value is ready for Add; it must not be copied.
type Lease struct {
	Owner Owner // set before Add

	deadline atomic.Pointer[Deadline] // never written: leases that were renewed together share one

	// These are guarded by the watchdog's lock.
	bucket     *bucket
	prev, next *Lease
	settles    int64 // when the owner is to be told that it lasts; 0 once that was done
	flying     bool  // a renewal is under way, or in line for a round trip
	kept       bool  // added and not removed
	early      bool  // its bucket is one before that of its renewal, which is due all the same
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
	pile    pile
	aside   aside
	running bool
	wakes   int64 // when the goroutine looks next: for most leases, which are removed before, it need not be woken
	closed  bool
	skew    skew // when last looked

	latest     *Deadline // that was made, for a command sent then
	latestSent Instant

	ctx    context.Context
	cancel context.CancelFunc
}

// New returns a watchdog that renews by this function. It starts no goroutine before the first Add.
func New(renew Renew) *Watchdog {
	w := &Watchdog{renew: renew, epoch: Now(), wake: make(chan struct{}, 1)}
	w.ctx, w.cancel = context.WithCancel(context.Background())
	return w
}

// Add takes a lease that was confirmed by a command sent at sent.
func (w *Watchdog) Add(l *Lease, sent Instant, length time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	l.deadline.Store(w.deadlineOf(sent, length))
	if w.closed {
		return
	}
	l.kept = true
	l.settles = w.since(sent.at.Add(SettleAfter))
	w.count++
	w.schedule(l)
	if !w.running {
		w.running = true
		w.skew = w.skewNow()
		go w.run()
	}
}

// deadlineOf is DeadlineOf that the leases share which one command has confirmed.
func (w *Watchdog) deadlineOf(sent Instant, length time.Duration) *Deadline {
	if w.latest == nil || w.latestSent != sent || w.latest.length != length {
		d := DeadlineOf(sent, length)
		w.latest, w.latestSent = &d, sent
	}
	return w.latest
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
		w.send([]Renewal{{l.Owner, l.Owner.Renewal(), l}})
		if len(w.pile.ready) > 0 {
			w.nudge()
		}
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
	w.leases, w.lines, w.pile = calendar{}, nil, pile{}
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

// countOf is since for a monotonic time.
func (w *Watchdog) countOf(mono time.Duration) int64 {
	return (mono - w.epoch.at.Sub(start)).Milliseconds()
}

// nudge makes the goroutine look at the calendar and at the pile again.
func (w *Watchdog) nudge() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}
