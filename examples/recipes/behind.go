package recipes

import (
	"context"
	"sync"
	"time"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/rlock"
)

// A Behind is a lock for somebody else's interface that has Lock and Unlock, and neither a context nor a token. A value is for one user of
// that interface at a time.
type Behind struct {
	lock *fenced.Lock
	wait time.Duration
	mu   sync.Mutex
	hold *fenced.Hold
}

// Lock waits for as long as wait says. The hold is renewed until Unlock.
func (b *Behind) Lock() error {
	hold, err := b.lock.Acquire(context.Background(), rlock.Wait(b.wait))
	if err != nil {
		return err // rlock.ErrNotAcquired, or what Redis said: nothing is held
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.hold = hold
	return nil
}

// Held returns the hold: its Done, for work that can be stopped when the lock is lost, and its Token, for storage.
func (b *Behind) Held() *fenced.Hold {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.hold
}

// Unlock returns rlock.ErrLost if the lock had been lost: somebody else may have worked at the same time.
func (b *Behind) Unlock() error {
	hold := b.Held()
	if hold == nil {
		return rlock.ErrNotHeld
	}
	return hold.Unlock(context.Background())
}
