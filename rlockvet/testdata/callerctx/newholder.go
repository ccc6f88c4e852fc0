package callerctx

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/rlock"
)

// The same adapters with Lock and TryLock, whose context they keep from ending.
var (
	_ gocronLocker    = (*gocron2)(nil)
	_ gocronElector   = (*elector2)(nil)
	_ certmagicLocker = (*certmagic2)(nil)
	_ tusdLock        = (*tusd2)(nil)
	_ daprStore       = (*dapr2)(nil)
	_ vaultLock       = (*vault2)(nil)
	_ ncpsLocker      = (*ncps2)(nil)
)

// heldLock is a hold with what its Unlock needs.
type heldLock struct {
	lock *rlock.Lock
	held context.Context
}

func (h heldLock) Unlock(context.Context) error { return h.lock.Unlock(h.held) }

type gocron2 struct{ client *rlock.Client }

func (g *gocron2) Lock(ctx context.Context, key string) (gocronLock, error) {
	lock := rlock.NewLock(g.client, "gocron:"+key)
	held, err := lock.TryLock(rlock.NewHolder(context.WithoutCancel(ctx)), 0, 0)
	if err != nil {
		return nil, err
	}
	return heldLock{lock, held}, nil
}

type elector2 struct {
	lock  *fenced.Lock
	mu    sync.Mutex
	held  context.Context
	token int64
}

func (e *elector2) IsLeader(ctx context.Context) (err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.held != nil && e.held.Err() == nil {
		return nil
	}
	own := rlock.NewHolder(context.WithoutCancel(ctx))
	e.held, e.token, err = e.lock.TryLockAndGetToken(own, 0, 0)
	return err
}

type certmagic2 struct {
	client *rlock.Client
	mu     sync.Mutex
	held   map[string]heldLock
}

func (c *certmagic2) Lock(ctx context.Context, name string) error {
	wait := time.Minute
	if until, ok := ctx.Deadline(); ok {
		wait = time.Until(until)
	}
	lock := rlock.NewLock(c.client, name)
	held, err := lock.TryLock(rlock.NewHolder(context.WithoutCancel(ctx)), wait, 0)
	if err != nil {
		return err
	}
	if ctx.Err() != nil {
		return errors.Join(ctx.Err(), lock.Unlock(held))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.held[name] = heldLock{lock, held}
	return nil
}

func (c *certmagic2) Unlock(ctx context.Context, name string) error {
	c.mu.Lock()
	h := c.held[name]
	delete(c.held, name)
	c.mu.Unlock()
	return h.Unlock(ctx)
}

type tusd2 struct {
	lock    *rlock.Lock
	release func() error
}

func (u *tusd2) Lock(ctx context.Context, requestUnlock func()) error {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	held, err := u.lock.TryLock(rlock.NewHolder(ctx), 20*time.Second, 0)
	if err != nil {
		cancel()
		return err
	}
	go func() {
		<-held.Done()
		requestUnlock()
	}()
	u.release = func() error {
		defer cancel()
		return u.lock.Unlock(held)
	}
	return nil
}

func (u *tusd2) Unlock() error { return u.release() }

type dapr2 struct {
	client *rlock.Client
	held   sync.Map
}

func (d *dapr2) TryLock(ctx context.Context, req *tryLockRequest) (*tryLockResponse, error) {
	own := rlock.NewHolder(context.WithoutCancel(ctx))
	lock := rlock.NewLock(d.client, req.ResourceID)
	held, err := lock.TryLock(own, 0, time.Duration(req.ExpiryInSeconds)*time.Second)
	if errors.Is(err, rlock.ErrNotAcquired) {
		return &tryLockResponse{}, nil
	}
	if err != nil {
		return nil, err
	}
	d.held.Store([2]string{req.ResourceID, req.LockOwner}, &heldLock{lock: lock, held: held})
	return &tryLockResponse{Success: true}, nil
}

func (d *dapr2) Unlock(ctx context.Context, req *unlockRequest) (*unlockResponse, error) {
	h, ok := d.held.LoadAndDelete([2]string{req.ResourceID, req.LockOwner})
	if !ok {
		return &unlockResponse{Status: 1}, nil
	}
	return &unlockResponse{}, h.(*heldLock).Unlock(ctx)
}

type vault2 struct {
	lock   *rlock.Lock
	held   context.Context
	cancel context.CancelFunc
}

func (v *vault2) Lock(stopCh <-chan struct{}) (<-chan struct{}, error) {
	ctx, cancel := context.WithCancel(context.Background())
	got := make(chan struct{})
	defer close(got)
	go func() {
		select {
		case <-stopCh:
			cancel()
		case <-got:
		}
	}()
	held, err := v.lock.Lock(ctx)
	if err != nil {
		cancel()
		return nil, err
	}
	v.held, v.cancel = held, cancel
	return held.Done(), nil
}

func (v *vault2) Unlock() error {
	defer v.cancel()
	return v.lock.Unlock(v.held)
}

type ncps2 struct {
	client *rlock.Client
	held   sync.Map
}

func (n *ncps2) Lock(ctx context.Context, key string, ttl time.Duration) error {
	return n.take(ctx, key, ttl)
}

func (n *ncps2) TryLock(ctx context.Context, key string, _ time.Duration) (bool, error) {
	err := n.take(ctx, key, 0)
	if errors.Is(err, rlock.ErrNotAcquired) {
		return false, nil
	}
	return err == nil, err
}

func (n *ncps2) take(ctx context.Context, key string, wait time.Duration) error {
	lock := rlock.NewLock(n.client, key)
	held, err := lock.TryLock(rlock.NewHolder(context.WithoutCancel(ctx)), wait, 0)
	if err != nil {
		return err
	}
	n.held.Store(key, heldLock{lock, held})
	return nil
}

func (n *ncps2) Unlock(ctx context.Context, key string) error {
	h, ok := n.held.LoadAndDelete(key)
	if !ok {
		return rlock.ErrNotHeld
	}
	return h.(heldLock).Unlock(ctx)
}
