package main

import (
	"context"
	"time"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/internal/engine"
	"github.com/fencelock/fencelock/rlock"
)

// A plainLock is a lock without tokens.
type plainLock struct{ *rlock.Lock }

func (l plainLock) TryLockAndGetToken(ctx context.Context, wait, lease time.Duration) (context.Context, int64, error) {
	held, err := l.TryLock(ctx, wait, lease)
	return held, 0, err
}

func (l plainLock) LockAndGetToken(ctx context.Context) (context.Context, int64, error) {
	held, err := l.Lock.Lock(ctx)
	return held, 0, err
}

func (l plainLock) LockLeaseAndGetToken(ctx context.Context, lease time.Duration) (context.Context, int64, error) {
	held, err := l.LockLease(ctx, lease)
	return held, 0, err
}

// inner is what the lock of the library is inside; nil for one that is not the library's.
func inner(l lock) *engine.Lock {
	switch l := l.(type) {
	case *fenced.Lock:
		return (*engine.Lock)(l)
	case plainLock:
		return (*engine.Lock)(l.Lock)
	}
	return nil
}
