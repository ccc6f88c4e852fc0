package locktusd

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/tus/tusd/v2/pkg/handler"

	"github.com/fencelock/fencelock/rlock"
)

var (
	_ handler.Locker = (*Locker)(nil)
	_ handler.Lock   = (*lock)(nil)
)

// A Locker makes the locks of uploads, for handler.StoreComposer. New makes one.
type Locker struct {
	client *rlock.Client
	prefix string
}

// An Option changes what New makes.
type Option func(*Locker)

// WithPrefix sets what stands before an upload's id in the name of its lock, which is the key in Redis: "tusd:upload:" by default. Servers that
// share a Redis, and no storage, need prefixes of their own.
func WithPrefix(prefix string) Option { return func(l *Locker) { l.prefix = prefix } }

// New makes a Locker of the client's locks.
func New(client *rlock.Client, opts ...Option) (*Locker, error) {
	if client == nil {
		return nil, errors.New("locktusd: New was given no client: make one with rlock.New")
	}
	l := &Locker{client: client, prefix: "tusd:upload:"}
	for _, opt := range opts {
		opt(l)
	}
	return l, nil
}

// UseIn makes the composer use these locks.
func (l *Locker) UseIn(composer *handler.StoreComposer) { composer.UseLocker(l) }

// NewLock returns the lock of the upload with this id, not locked yet. It asks nobody. The error is that of an id that is empty.
//
// Lock of that lock waits as long as its ctx lives, and then returns handler.ErrLockTimeout. ctx does not end the hold, which is renewed until
// Unlock. While Redis is away Lock tries again for rlock.WithPatience, 10 s by default, then it returns what Redis said. requestUnlock is called
// once, in a goroutine of its own: when somebody else waits for the lock, or when the lock was lost, or the client closed. It is not called after
// Unlock.
//
// Unlock of that lock releases it. It takes no longer than rlock.WithUnlockTimeout, 5 s by default; if Redis does not answer, the release is sent
// again in the background. The error is rlock.ErrLost if the lock had been lost, so that another request may have written too, or rlock.ErrNotHeld if
// there is nothing to unlock.
func (l *Locker) NewLock(id string) (handler.Lock, error) {
	if id == "" {
		return nil, errors.New("locktusd: the id of the upload is empty: give the one of its FileInfo")
	}
	return &lock{lock: rlock.NewLock(l.client, l.prefix+id)}, nil
}

type lock struct {
	lock *rlock.Lock
	mu   sync.Mutex
	hold *rlock.Hold
}

func (l *lock) Lock(ctx context.Context, requestUnlock func()) error {
	hold, err := l.lock.Acquire(ctx)
	switch {
	case err != nil && ctx.Err() != nil:
		return handler.ErrLockTimeout
	case err != nil:
		return fmt.Errorf("locktusd: %w", err)
	}
	l.mu.Lock()
	l.hold = hold
	l.mu.Unlock()
	go func() {
		select {
		case <-hold.Waited():
		case <-hold.Done():
		}
		if !errors.Is(hold.Err(), rlock.ErrUnlocked) {
			requestUnlock()
		}
	}()
	return nil
}

func (l *lock) Unlock() error {
	l.mu.Lock()
	hold := l.hold
	l.mu.Unlock()
	if hold == nil {
		return fmt.Errorf("locktusd: Unlock without a Lock before it: %w", rlock.ErrNotHeld)
	}
	return hold.Unlock(context.Background())
}
