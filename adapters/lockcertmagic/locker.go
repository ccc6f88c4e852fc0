package lockcertmagic

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/caddyserver/certmagic"

	"github.com/fencelock/fencelock/rlock"
)

var (
	_ certmagic.Locker           = (*Locker)(nil)
	_ certmagic.TryLocker        = (*Locker)(nil)
	_ certmagic.LockLeaseRenewer = (*Locker)(nil)

	_ certmagic.Storage          = storage{}
	_ certmagic.TryLocker        = storage{}
	_ certmagic.LockLeaseRenewer = storage{}
)

// A Locker has the locks of certmagic by their names. New makes one; a process needs one for each prefix.
type Locker struct {
	client   *rlock.Client
	prefix   string
	maxLease time.Duration

	mu   sync.Mutex
	owed map[string][]*rlock.Hold // holds whose Unlock has not come: one at most that was not lost
}

// An Option changes what New makes.
type Option func(*Locker)

// WithPrefix sets what stands before the name of a lock in Redis, where the two are the key: "certmagic:lock:" by default. Processes that share a
// Redis, and no storage, need prefixes of their own.
func WithPrefix(prefix string) Option { return func(l *Locker) { l.prefix = prefix } }

// WithMaxLease bounds what RenewLockLease makes of a lease: 5 minutes by default, 10 ms at least. The lock of a process that dies stays taken for up
// to d. A process that lives keeps its lock also while Redis is away for up to d after an attempt began.
func WithMaxLease(d time.Duration) Option { return func(l *Locker) { l.maxLease = d } }

// New makes a Locker of the client's locks.
func New(client *rlock.Client, opts ...Option) (*Locker, error) {
	l := &Locker{client: client, prefix: "certmagic:lock:", maxLease: 5 * time.Minute, owed: map[string][]*rlock.Hold{}}
	for _, opt := range opts {
		opt(l)
	}
	switch {
	case client == nil:
		return nil, errors.New("lockcertmagic: New was given no client: make one with rlock.New")
	case l.maxLease < 10*time.Millisecond:
		return nil, fmt.Errorf("lockcertmagic: WithMaxLease(%v): give 10 ms or more", l.maxLease)
	}
	return l, nil
}

// Lock takes the lock of this name, and waits for it as long as ctx lives. ctx does not end the hold, which is renewed until Unlock. While Redis is
// away Lock tries again for rlock.WithPatience, 10 s by default, then it returns what Redis said.
func (l *Locker) Lock(ctx context.Context, name string) error { return l.acquire(ctx, name) }

// TryLock takes the lock of this name if it is free, and returns false if somebody has it. While Redis is away it tries for a second, then it returns
// what Redis said.
func (l *Locker) TryLock(ctx context.Context, name string) (bool, error) {
	err := l.acquire(ctx, name, rlock.Wait(0))
	if errors.Is(err, rlock.ErrNotAcquired) {
		return false, nil
	}
	return err == nil, err
}

func (l *Locker) acquire(ctx context.Context, name string, opts ...rlock.AcquireOption) error {
	hold, err := rlock.NewLock(l.client, l.prefix+name).Acquire(ctx, opts...)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.owed[name] = append(l.owed[name], hold)
	return nil
}

// Unlock releases the lock of this name, or takes note that the Unlock of a hold that was lost has come: then it returns nil, and releases nothing.
// It works with a ctx that has ended, and takes no longer than rlock.WithUnlockTimeout, 5 s by default. When Redis does not answer it returns an
// error, and the release is sent again in the background. The error is rlock.ErrNotHeld if no Unlock of this name is owed: nothing happened.
func (l *Locker) Unlock(ctx context.Context, name string) error {
	hold := l.settle(name)
	if hold == nil {
		return fmt.Errorf("lockcertmagic: Unlock of %q without a Lock before it: %w", name, rlock.ErrNotHeld)
	}
	if err := hold.Unlock(ctx); !errors.Is(err, rlock.ErrLost) {
		return err
	}
	return nil
}

// settle takes out the hold that an Unlock is for: one that was lost, if there is one.
func (l *Locker) settle(name string) *rlock.Hold {
	l.mu.Lock()
	defer l.mu.Unlock()
	owed := l.owed[name]
	if len(owed) == 0 {
		return nil
	}
	at := max(0, slices.IndexFunc(owed, func(hold *rlock.Hold) bool { return hold.Err() != nil }))
	hold := owed[at]
	if owed = slices.Delete(owed, at, at+1); len(owed) == 0 {
		delete(l.owed, name)
	} else {
		l.owed[name] = owed
	}
	return hold
}

// RenewLockLease makes the lease of the lock of this name last for leaseDuration from now, but no longer than WithMaxLease allows, and no shorter
// than it is. The hold is renewed as before, also without this call. The error is rlock.ErrNotHeld if this process does not have the lock,
// rlock.ErrLost if it lost it, or what Redis said after rlock.WithPatience. A goroutine that lost the lock to another one of the same process hears
// nothing of that: it gives the same name.
func (l *Locker) RenewLockLease(ctx context.Context, lockKey string, leaseDuration time.Duration) error {
	l.mu.Lock()
	var hold *rlock.Hold
	for _, owed := range l.owed[lockKey] {
		if hold = owed; hold.Err() == nil {
			break
		}
	}
	l.mu.Unlock()
	if hold == nil {
		return fmt.Errorf("lockcertmagic: RenewLockLease of %q without a Lock before it: %w", lockKey, rlock.ErrNotHeld)
	}
	return hold.Extend(ctx, min(leaseDuration, l.maxLease))
}

// Storage returns a storage that keeps things in the one given and locks with this Locker. It is a certmagic.TryLocker and a
// certmagic.LockLeaseRenewer.
func (l *Locker) Storage(of certmagic.Storage) certmagic.Storage { return storage{of, l} }

// storage has the methods of the Locker in place of those of the Storage.
type storage struct {
	certmagic.Storage
	locker *Locker
}

func (s storage) Lock(ctx context.Context, name string) error { return s.locker.Lock(ctx, name) }

func (s storage) TryLock(ctx context.Context, name string) (bool, error) {
	return s.locker.TryLock(ctx, name)
}

func (s storage) Unlock(ctx context.Context, name string) error { return s.locker.Unlock(ctx, name) }

func (s storage) RenewLockLease(ctx context.Context, lockKey string, leaseDuration time.Duration) error {
	return s.locker.RenewLockLease(ctx, lockKey, leaseDuration)
}
