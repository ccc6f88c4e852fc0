package callerctx

import (
	"context"
	"sync"

	"github.com/fencelock/fencelock/rlock"
)

type bad struct {
	client *rlock.Client
	held   sync.Map
}

type good struct {
	client *rlock.Client
	holds  sync.Map
}

// bad: the hold ends as soon as the caller ends its context.
func (b *bad) Lock(ctx context.Context, key string) error {
	held, err := rlock.NewLock(b.client, key).Lock(ctx) // want `the hold is kept after Lock returns, and ends with the context of its caller. Use Acquire, whose context bounds only the wait`
	if err != nil {
		return err
	}
	b.held.Store(key, held)
	return nil
}

// good waits as long, and the hold lasts until its Unlock.
func (g *good) Lock(ctx context.Context, key string) error {
	hold, err := rlock.NewLock(g.client, key).Acquire(ctx)
	if err != nil {
		return err
	}
	g.holds.Store(key, hold)
	return nil
}

type kept struct {
	lock *rlock.Lock
	held context.Context
	all  map[string]kept
}

func (k *kept) Lock(ctx context.Context, requestUnlock func()) error {
	held, err := k.lock.Lock(ctx) // want `the hold is kept after Lock returns`
	if err != nil {
		return err
	}
	k.held = held
	return nil
}

func (k *kept) TryLock(ctx context.Context) (err error) {
	k.held, err = k.lock.TryLock(ctx, 0, 0) // want `the hold is kept after TryLock returns`
	return err
}

func (k *kept) Acquire(ctx context.Context) error {
	held, err := k.lock.Lock(ctx) // want `the hold is kept after Acquire returns`
	if err == nil {
		k.all["a"] = kept{lock: k.lock, held: held}
	}
	return err
}

// own has a context that its caller does not end.
type own struct{ kept }

func (o *own) Lock(ctx context.Context) (err error) {
	lasting := context.WithoutCancel(ctx)
	o.held, err = o.lock.Lock(lasting)
	return err
}

func (o *own) TryLock(ctx context.Context) (context.Context, error) { return o.lock.TryLock(ctx, 0, 0) }

// Acquire unlocks itself.
func (o *own) Acquire(ctx context.Context) error {
	held, err := o.lock.Lock(ctx)
	if err != nil {
		return err
	}
	o.held = held
	return o.lock.Unlock(o.held)
}

// Open has a name that promises nothing of a lock: its caller is the program's own.
func (o *own) Open(ctx context.Context) (err error) {
	o.held, err = o.lock.Lock(ctx)
	return err
}
