package lockgocron

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/fencelock/fencelock/rlock"
)

var _ gocron.Locker = (*Locker)(nil)

// A Locker locks each run of a job by the job's name, for gocron.WithDistributedLocker. NewLocker makes one.
type Locker struct {
	client  *rlock.Client
	prefix  string
	minimum time.Duration

	mu      sync.Mutex
	kept    map[*lock]*time.Timer // what is held for its minimum, after the job
	pending sync.WaitGroup        // its releases
	closed  bool
}

// An Option changes what NewLocker makes.
type Option func(*Locker)

// WithPrefix sets what stands before a job's name in the name of its lock, which is the key in Redis: "gocron:job:" by default. Applications that
// share a Redis, and have jobs of the same name, need prefixes of their own.
func WithPrefix(prefix string) Option { return func(l *Locker) { l.prefix = prefix } }

// WithMinimumHold keeps the lock of a job for at least d from when it was acquired, also if the job ends before that: 0 by default. So a job runs
// once for all processes whose schedulers tick within d. d is to be less than the job's interval, otherwise the job's next run finds the lock
// still taken, and is skipped.
//
// The lock is kept in the background, and renewed as while the job ran. The rest of the minimum is over when Close is called; when the process
// dies the lock is free at the end of its lease.
func WithMinimumHold(d time.Duration) Option { return func(l *Locker) { l.minimum = d } }

// NewLocker makes a Locker of the client's locks.
func NewLocker(client *rlock.Client, opts ...Option) (*Locker, error) {
	l := &Locker{client: client, prefix: "gocron:job:", kept: map[*lock]*time.Timer{}}
	for _, opt := range opts {
		opt(l)
	}
	switch {
	case client == nil:
		return nil, errors.New("lockgocron: NewLocker was given no client: make one with rlock.New")
	case l.minimum < 0:
		return nil, fmt.Errorf("lockgocron: WithMinimumHold(%v): give a time of 0 or more", l.minimum)
	}
	return l, nil
}

// Lock takes the lock of the job that is called key, and does not wait for another run of it: then the error is rlock.ErrNotAcquired, and gocron
// skips the run. While Redis is away Lock tries for a second, and returns what Redis said: gocron skips the run then, too, in every process. The end
// of ctx ends the attempt, and not the hold, which is renewed until Unlock: gocron ends ctx at its Shutdown, before the job has ended. After Close
// the error is rlock.ErrClosed.
func (l *Locker) Lock(ctx context.Context, key string) (gocron.Lock, error) {
	l.mu.Lock()
	closed := l.closed
	l.mu.Unlock()
	if closed {
		return nil, fmt.Errorf("lockgocron: the Locker was closed: %w", rlock.ErrClosed)
	}
	hold, err := rlock.NewLock(l.client, l.prefix+key).Acquire(ctx, rlock.Wait(0))
	if err != nil {
		return nil, err
	}
	return &lock{l, hold, time.Now()}, nil
}

// Close releases the locks that are kept for their minimum alone, and waits until they are released: for up to rlock.WithUnlockTimeout, 5 s by
// default, when Redis does not answer. Jobs that run still keep their locks until they end, and no longer. Call Close after the scheduler's Shutdown,
// and before the client is closed. To let the minimum pass instead, call the client's Shutdown first: it waits for all holds. The error says which
// releases failed.
func (l *Locker) Close() error {
	l.mu.Lock()
	l.closed = true
	kept := l.kept
	l.kept = nil
	l.mu.Unlock()
	errs := make(chan error, len(kept))
	for lock, timer := range kept {
		timer.Stop()
		go func() { errs <- lock.hold.Unlock(context.Background()) }()
	}
	var all []error
	for range kept {
		all = append(all, <-errs)
		l.pending.Done()
	}
	l.pending.Wait()
	return errors.Join(all...)
}

// lock is the lock of one run of a job.
type lock struct {
	locker *Locker
	hold   *rlock.Hold
	since  time.Time
}

// Unlock releases the lock, or leaves that to a timer if the minimum is not over. The errors are those of rlock.Hold.
func (h *lock) Unlock(ctx context.Context) error {
	if left := h.locker.minimum - time.Since(h.since); left > 0 && h.hold.Err() == nil && h.locker.keep(h, left) {
		return nil
	}
	return h.hold.Unlock(ctx)
}

// keep has the lock released later; false if the Locker was closed.
func (l *Locker) keep(h *lock, left time.Duration) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return false
	}
	l.pending.Add(1)
	l.kept[h] = time.AfterFunc(left, func() {
		l.mu.Lock()
		_, mine := l.kept[h] // not Close's
		delete(l.kept, h)
		l.mu.Unlock()
		if mine {
			_ = h.hold.Unlock(context.Background()) // what Redis does not answer is sent again in the background, and logged
			l.pending.Done()
		}
	})
	return true
}
