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

// Lock as the library has it, which gives the context back, and is a section of its own.
type wrapper struct {
	lock *rlock.Lock
	seen context.Context
}

func (w *wrapper) Lock(ctx context.Context) (context.Context, error) { return w.lock.Lock(ctx) }

func (w *wrapper) TryLock(ctx context.Context) (context.Context, error) {
	held, err := w.lock.TryLock(ctx, 0, 0)
	if err != nil {
		return nil, err
	}
	return held, nil
}

func (w *wrapper) Acquire(ctx context.Context, work func(context.Context) error) error {
	held, err := w.lock.Lock(ctx)
	if err != nil {
		return err
	}
	defer w.lock.Unlock(held)
	w.seen = held
	return work(held)
}

type steps struct{ lock *rlock.Lock }

func (s *steps) Lock(ctx context.Context) (context.Context, error) {
	var got struct{ held context.Context }
	held, err := s.lock.Lock(ctx)
	if err != nil {
		return nil, err
	}
	got.held = held
	return got.held, nil
}

// Open has a name that promises nothing of a lock: its caller is the program's own.
func (w *wrapper) Open(ctx context.Context) error {
	held, err := w.lock.Lock(ctx)
	w.seen = held
	return err
}
