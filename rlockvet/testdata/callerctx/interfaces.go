package callerctx

import (
	"context"
	"time"
)

// The interfaces of other projects that a lock is put behind.

type gocronLocker interface {
	Lock(ctx context.Context, key string) (gocronLock, error)
}

type gocronLock interface {
	Unlock(ctx context.Context) error
}

type gocronElector interface {
	IsLeader(context.Context) error
}

type certmagicLocker interface {
	Lock(ctx context.Context, name string) error
	Unlock(ctx context.Context, name string) error
}

type tusdLocker interface {
	NewLock(id string) (tusdLock, error)
}

type tusdLock interface {
	Lock(ctx context.Context, requestUnlock func()) error
	Unlock() error
}

type daprStore interface {
	TryLock(ctx context.Context, req *tryLockRequest) (*tryLockResponse, error)
	Unlock(ctx context.Context, req *unlockRequest) (*unlockResponse, error)
}

type tryLockRequest struct {
	ResourceID, LockOwner string
	ExpiryInSeconds       int32
}

type tryLockResponse struct{ Success bool }

type unlockRequest struct{ ResourceID, LockOwner string }

type unlockResponse struct{ Status int32 }

type vaultBackend interface {
	LockWith(key, value string) (vaultLock, error)
}

type vaultLock interface {
	Lock(stopCh <-chan struct{}) (<-chan struct{}, error)
	Unlock() error
}

type ncpsLocker interface {
	Lock(ctx context.Context, key string, ttl time.Duration) error
	TryLock(ctx context.Context, key string, ttl time.Duration) (bool, error)
	Unlock(ctx context.Context, key string) error
}
