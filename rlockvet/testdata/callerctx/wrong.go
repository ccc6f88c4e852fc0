package callerctx

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/rlock"
)

// The same adapters as they are wrong.
var (
	_ gocronLocker    = (*gocron3)(nil)
	_ certmagicLocker = (*certmagic3)(nil)
	_ tusdLock        = (*tusd3)(nil)
	_ daprStore       = (*dapr3)(nil)
	_ ncpsLocker      = (*ncps3)(nil)
)

type gocron3 struct{ client *rlock.Client }

func (g *gocron3) Lock(ctx context.Context, key string) (gocronLock, error) {
	lock := rlock.NewLock(g.client, "gocron:"+key)
	held, err := lock.TryLock(ctx, 0, 0) // want `the hold is kept after Lock returns`
	if err != nil {
		return nil, err
	}
	return heldLock{lock, held}, nil
}

type certmagic3 struct {
	client *rlock.Client
	mu     sync.Mutex
	held   map[string]heldLock
}

func (c *certmagic3) Lock(ctx context.Context, name string) error {
	lock := rlock.NewLock(c.client, name)
	held, err := lock.Lock(rlock.NewHolder(ctx)) // want `the hold is kept after Lock returns`
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.held[name] = heldLock{lock, held}
	return nil
}

func (c *certmagic3) Unlock(ctx context.Context, name string) error { return c.held[name].Unlock(ctx) }

type tusd3 struct {
	lock    *rlock.Lock
	release func() error
}

func (u *tusd3) Lock(ctx context.Context, requestUnlock func()) error {
	ctx, err := u.lock.Lock(ctx) // want `the hold is kept after Lock returns`
	if err != nil {
		return err
	}
	u.release = func() error { return u.lock.Unlock(ctx) }
	return nil
}

func (u *tusd3) Unlock() error { return u.release() }

type dapr3 struct {
	client *rlock.Client
	held   map[string]*held3
}

type held3 struct {
	lock *fenced.Lock
	ctx  context.Context
}

func (d *dapr3) TryLock(ctx context.Context, req *tryLockRequest) (*tryLockResponse, error) {
	lease := time.Duration(req.ExpiryInSeconds) * time.Second
	h := &held3{lock: fenced.NewLock(d.client, req.ResourceID)}
	var err error
	h.ctx, err = h.lock.TryLock(ctx, 0, lease) // want `the hold is kept after TryLock returns`
	if errors.Is(err, rlock.ErrNotAcquired) {
		return &tryLockResponse{}, nil
	}
	if err != nil {
		return nil, err
	}
	d.held[req.ResourceID] = h
	return &tryLockResponse{Success: true}, nil
}

func (d *dapr3) Unlock(ctx context.Context, req *unlockRequest) (*unlockResponse, error) {
	h := d.held[req.ResourceID]
	return &unlockResponse{}, h.lock.Unlock(h.ctx)
}

type ncps3 struct {
	client *rlock.Client
	held   sync.Map
	ctx    context.Context
	lock   *rlock.Lock
}

func (n *ncps3) Lock(ctx context.Context, key string, ttl time.Duration) error {
	lock := rlock.NewLock(n.client, key)
	held, token, err := fenced.NewLock(n.client, key).LockAndGetToken(ctx) // want `the hold is kept after Lock returns`
	if err != nil {
		return err
	}
	n.held.Store(key, token)
	_, _ = lock, held
	return nil
}

func (n *ncps3) TryLock(ctx context.Context, _ string, ttl time.Duration) (bool, error) {
	held, err := n.lock.TryLock(ctx, ttl, 0) // want `the hold is kept after TryLock returns`
	if err != nil {
		return false, err
	}
	use(held)
	n.ctx = ctx
	return true, nil
}

func (n *ncps3) Unlock(context.Context, string) error { return n.lock.Unlock(n.ctx) }

func use(context.Context) {}

type electorWithName struct {
	lock *rlock.Lock
	undo func() error
}

// Acquire gives a function back that has the hold.
func (e *electorWithName) Acquire(ctx context.Context) (func() error, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	held, err := e.lock.Lock(ctx) // want `the hold is kept after Acquire returns`
	if err != nil {
		cancel()
		return nil, err
	}
	return func() error {
		defer cancel()
		return e.lock.Unlock(held)
	}, nil
}
