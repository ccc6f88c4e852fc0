package callerctx

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/rlock"
)

// Adapters with Acquire.
var (
	_ gocronLocker    = (*gocron)(nil)
	_ gocronElector   = (*elector)(nil)
	_ certmagicLocker = (*certmagic)(nil)
	_ tusdLocker      = (*tusd)(nil)
	_ daprStore       = (*dapr)(nil)
	_ vaultBackend    = (*vault)(nil)
	_ ncpsLocker      = (*ncps)(nil)
)

type gocron struct{ client *rlock.Client }

func (g *gocron) Lock(ctx context.Context, key string) (gocronLock, error) {
	hold, err := rlock.NewLock(g.client, "gocron:"+key).Acquire(ctx, rlock.Wait(0))
	if err != nil {
		return nil, err
	}
	return hold, nil
}

type elector struct {
	lock *fenced.Lock
	mu   sync.Mutex
	hold *fenced.Hold
}

func (e *elector) IsLeader(ctx context.Context) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.hold != nil && e.hold.Err() == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	hold, err := e.lock.Acquire(ctx, rlock.Wait(0))
	if err != nil {
		return err
	}
	e.hold = hold
	return nil
}

type certmagic struct {
	client *rlock.Client
	mu     sync.Mutex
	holds  map[string]*rlock.Hold
}

func (c *certmagic) Lock(ctx context.Context, name string) error {
	hold, err := rlock.NewLock(c.client, name).Acquire(ctx)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.holds[name] = hold
	return nil
}

func (c *certmagic) Unlock(ctx context.Context, name string) error {
	c.mu.Lock()
	hold := c.holds[name]
	delete(c.holds, name)
	c.mu.Unlock()
	if hold == nil {
		return rlock.ErrNotHeld
	}
	return hold.Unlock(ctx)
}

type tusd struct{ client *rlock.Client }

type tusdUpload struct {
	lock *rlock.Lock
	hold *rlock.Hold
}

func (t *tusd) NewLock(id string) (tusdLock, error) {
	return &tusdUpload{lock: rlock.NewLock(t.client, "tusd:"+id)}, nil
}

func (u *tusdUpload) Lock(ctx context.Context, requestUnlock func()) error {
	hold, err := u.lock.Acquire(ctx)
	if err != nil {
		return err
	}
	go func() {
		select {
		case <-hold.Waited():
			requestUnlock()
		case <-hold.Done():
		}
	}()
	u.hold = hold
	return nil
}

func (u *tusdUpload) Unlock() error { return u.hold.Unlock(context.Background()) }

type dapr struct {
	client *rlock.Client
	holds  sync.Map
}

func (d *dapr) TryLock(ctx context.Context, req *tryLockRequest) (*tryLockResponse, error) {
	lease := time.Duration(req.ExpiryInSeconds) * time.Second
	hold, err := rlock.NewLock(d.client, req.ResourceID).Acquire(ctx, rlock.Wait(0), rlock.Lease(lease))
	if errors.Is(err, rlock.ErrNotAcquired) {
		return &tryLockResponse{}, nil
	}
	if err != nil {
		return nil, err
	}
	d.holds.Store([2]string{req.ResourceID, req.LockOwner}, hold)
	return &tryLockResponse{Success: true}, nil
}

func (d *dapr) Unlock(ctx context.Context, req *unlockRequest) (*unlockResponse, error) {
	hold, ok := d.holds.LoadAndDelete([2]string{req.ResourceID, req.LockOwner})
	if !ok {
		return &unlockResponse{Status: 1}, nil
	}
	return &unlockResponse{}, hold.(*rlock.Hold).Unlock(ctx)
}

type vault struct{ client *rlock.Client }

type vaultHold struct {
	lock *rlock.Lock
	hold *rlock.Hold
}

func (v *vault) LockWith(key, _ string) (vaultLock, error) {
	return &vaultHold{lock: rlock.NewLock(v.client, key)}, nil
}

func (v *vaultHold) Lock(stopCh <-chan struct{}) (<-chan struct{}, error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		select {
		case <-stopCh:
			cancel()
		case <-ctx.Done():
		}
	}()
	hold, err := v.lock.Acquire(ctx)
	if errors.Is(err, context.Canceled) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	v.hold = hold
	return hold.Done(), nil
}

func (v *vaultHold) Unlock() error { return v.hold.Unlock(context.Background()) }

type ncps struct {
	client *rlock.Client
	holds  sync.Map
}

func (n *ncps) Lock(ctx context.Context, key string, ttl time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, ttl)
	defer cancel()
	hold, err := rlock.NewLock(n.client, key).Acquire(ctx)
	if err != nil {
		return err
	}
	n.holds.Store(key, hold)
	return nil
}

func (n *ncps) TryLock(ctx context.Context, key string, ttl time.Duration) (bool, error) {
	hold, err := rlock.NewLock(n.client, key).Acquire(ctx, rlock.Wait(0), rlock.Lease(ttl))
	switch {
	case errors.Is(err, rlock.ErrNotAcquired):
		return false, nil
	case err != nil:
		return false, err
	}
	n.holds.Store(key, hold)
	return true, nil
}

func (n *ncps) Unlock(ctx context.Context, key string) error {
	if hold, ok := n.holds.LoadAndDelete(key); ok {
		return hold.(*rlock.Hold).Unlock(ctx)
	}
	return rlock.ErrNotHeld
}
