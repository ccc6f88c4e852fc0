package defercancel

import (
	"context"

	"github.com/fencelock/fencelock/rlock"
)

// A lock of Vault's HA backend. The right forms are in the package callerctx.
type vault struct {
	lock *rlock.Lock
	held context.Context
}

func (v *vault) Lock(stopCh <-chan struct{}) (<-chan struct{}, error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		select {
		case <-stopCh:
			cancel()
		case <-ctx.Done():
		}
	}()
	held, err := v.lock.Lock(ctx) // want `the hold leaves the function`
	if err != nil {
		return nil, err
	}
	v.held = held
	return held.Done(), nil
}

func (v *vault) Unlock() error { return v.lock.Unlock(v.held) }
