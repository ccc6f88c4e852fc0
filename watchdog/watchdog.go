package watchdog

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

var (
	// ErrGone says that a renewal found the lease gone: Renew returns it, and Owner.Lost gets it.
	ErrGone = errors.New("the lease is gone")
	// ErrExpired says that the deadline passed without a renewal that was confirmed in time, as when the server is away. Owner.Lost
	// gets it.
	ErrExpired = errors.New("the lease ran out")
)

const (
	// maxBatch bounds the renewals in one round trip. They travel together as scripts of a hundred renewals each. An answer that
	// does not come leaves no more than maxBatch leases in doubt.
	maxBatch = 500
	// usual is how many batches of one slot are under way at a time, unless they take long: while the server works on one, the next one
	// is on its way. Each slot has this number for itself, so that the leases of other nodes of a cluster do not wait for a node that does
	// not answer.
	usual = 2
	// maxFlying is how many batches of one slot are under way at most where they take long.
	maxFlying = 4
	// slow is the time after the start of a slot's latest batch from which on its batches under way count as taking long: up to maxFlying may
	// be under way then.
	slow = 50 * time.Millisecond
	// large is how many batches of all slots must wait, or be under way, for the watchdog to pause between two batches: see gap.
	large = 4000 / maxBatch
	// batchPause is the longest pause between two batches: time in which the server works for its other clients.
	batchPause = maxBatch * 5 * time.Microsecond
	// maxTake bounds the leases that the goroutine looks at with the lock held, so that Add and Remove never wait for long.
	maxTake = 1000
	// maxFlight bounds the time of one round trip, so that after one that hangs there is time for others.
	maxFlight = 5 * time.Second
	// patrol is the longest time that the goroutine sleeps: it wakes at least so often to notice that a clock has jumped, and to end if
	// there is no lease.
	patrol = time.Second
	// SettleAfter is the age at which a lease counts as one that lasts: see Owner.Settled. Most leases are gone long before.
	SettleAfter = time.Second
)

// Owner is the user of a lease, such as the hold of a lock. The watchdog calls its methods.
type Owner interface {
	// Renewal returns the length of the lease to ask for with the next renewal, 0 if the lease is not to be renewed. The watchdog
	// calls Renewal with its lock held: Renewal must neither block nor call the watchdog.
	Renewal() time.Duration
	// Slot returns a number that is the same for leases whose renewals may travel in one command. Like Renewal, it must neither
	// block nor call the watchdog.
	Slot() uint16
	// Settled tells the owner, once, that the lease has lasted for SettleAfter, where its renewals are further apart than that, or
	// there are none: the owner may want to learn by other means, and sooner, that the lease is gone.
	Settled()
	// Lost tells the owner that the lease is over: err is ErrExpired or ErrGone. It is the last call to the owner.
	Lost(err error)
}

// A Renewal is one lease in a batch.
type Renewal struct {
	Owner  Owner
	Length time.Duration // the lease to ask for; a longer expiry must be kept. 0: only ask whether the lease is there

	lease *Lease
}

// Renew sends the renewals in one round trip and returns the outcome of each: nil for a renewed lease, an error that is ErrGone, or
// an error that says why the outcome is not known, as when the server is away. It may return a nil slice where all leases were
// renewed. It must return when ctx ends.
type Renew func(ctx context.Context, batch []Renewal) []error

// Lease is one lease that a watchdog keeps. The zero value with an Owner is ready for Add. A Lease must not be copied.
type Lease struct {
	Owner Owner // set before Add

	deadline atomic.Pointer[Deadline] // the Deadline is never changed: leases that were renewed together share one

	// The fields below are guarded by the watchdog's lock.
	bucket     *bucket
	prev, next *Lease
	settles    int64 // when Settled may be called, on the watchdog's count; 0 when that time was dealt with
	flying     bool  // a renewal of the lease is in a batch that waits or is under way
	kept       bool  // the lease was added, and was neither removed nor lost since
	early      bool  // spread has put the lease into a bucket before its renewal is due: it is renewed when that bucket is taken
	unanswered bool  // the question whether the lease is still there got no answer, and is to be asked again
}

// Passed tells, by the clocks alone, whether the deadline of the lease has passed, so that the lease is not to be trusted any more.
func (l *Lease) Passed() bool {
	d := l.deadline.Load()
	return d != nil && d.Passed()
}

// PassedAt is Passed at this instant.
func (l *Lease) PassedAt(now Instant) bool {
	d := l.deadline.Load()
	return d != nil && d.passed(now)
}

// Deadline returns the deadline, the end of the trust in the lease; the zero Deadline before Add.
func (l *Lease) Deadline() Deadline {
	if d := l.deadline.Load(); d != nil {
		return *d
	}
	return Deadline{}
}

// Watchdog renews leases, and tells their owners when they are lost. Create it with New. It is safe for concurrent use.
type Watchdog struct {
	renew Renew
	epoch Instant       // when the watchdog was made: its count begins here
	wake  chan struct{} // wakes the goroutine

	mu       sync.Mutex
	leases   calendar
	count    int                   // how many leases are kept, in the sense of Lease.kept
	queues   map[uint16]*slotQueue // by slot, those with a batch that waits or is under way
	backlog  backlog
	overflow overflow
	running  bool
	wakes    int64 // when the goroutine looks next, on the watchdog's count: a lease that is due later need not wake it
	closed   bool
	skew     skew // when the goroutine looked last

	latest     *Deadline // the one that Add made last
	latestSent Instant   // for a command that was sent then

	ctx    context.Context
	cancel context.CancelFunc
}

// New returns a watchdog that renews leases by this function. It starts no goroutine before the first Add.
func New(renew Renew) *Watchdog {
	w := &Watchdog{renew: renew, epoch: Now(), wake: make(chan struct{}, 1)}
	w.ctx, w.cancel = context.WithCancel(context.Background())
	return w
}

// Add begins to keep a lease of this length that was confirmed by a command sent at sent. After Close the lease only gets its
// deadline.
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

// deadlineOf is DeadlineOf, but leases that were confirmed by one command share a Deadline. With w.mu held.
func (w *Watchdog) deadlineOf(sent Instant, length time.Duration) *Deadline {
	if w.latest == nil || w.latestSent != sent || w.latest.length != length {
		d := DeadlineOf(sent, length)
		w.latest, w.latestSent = &d, sent
	}
	return w.latest
}

// Extend notes a later confirmation of the lease, by a command sent at sent that asked for length. It never moves the deadline to an
// earlier time, and does nothing with a lease that is not kept.
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

// Ask sends a renewal now, without waiting for its answer, to learn whether the lease is still there. A lease that is not to be
// renewed is not extended. Where no answer comes the question is asked again, about once a second. Ask does nothing where a renewal is
// under way.
func (w *Watchdog) Ask(l *Lease) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if l.kept && !l.flying {
		w.send([]Renewal{{l.Owner, l.Owner.Renewal(), l}})
		if len(w.backlog.ready) > 0 {
			w.nudge()
		}
	}
}

// Remove forgets the lease. The answer to a renewal that is under way changes nothing any more.
func (w *Watchdog) Remove(l *Lease) {
	w.mu.Lock()
	w.drop(l)
	w.mu.Unlock()
}

// Close ends the context of all renewals that are under way, and forgets the leases; their owners are not told. It does not wait.
func (w *Watchdog) Close() {
	w.cancel()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	for _, l := range w.leases.all(nil) {
		w.drop(l)
	}
	w.leases, w.queues, w.backlog = calendar{}, nil, backlog{flying: w.backlog.flying}
	w.nudge()
}

// drop takes a lease out of the watchdog. With w.mu held.
func (w *Watchdog) drop(l *Lease) {
	if !l.kept {
		return
	}
	l.kept = false
	w.count--
	w.leases.remove(l)
}

// since returns a time in milliseconds on the watchdog's count, which begins at epoch; no step of the wall clock moves it.
func (w *Watchdog) since(t time.Time) int64 { return t.Sub(w.epoch.at).Milliseconds() }

// countOf is since for a monotonic time, counted from start.
func (w *Watchdog) countOf(mono time.Duration) int64 {
	return (mono - w.epoch.at.Sub(start)).Milliseconds()
}

// nudge makes the goroutine look at the calendar and at the backlog again.
func (w *Watchdog) nudge() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}
