// Package misuses has what somebody who comes from Redisson writes first, and the compiler accepts. rlockvet has something to say of each
// line that names a check.
package misuses

import (
	"context"
	"time"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/guard"
	"github.com/fencelock/fencelock/rlock"
)

func work(context.Context) error { return nil }

// In Java the thread is the holder, and lock() returns nothing.
func dropped(ctx context.Context, lock *fenced.Lock) error {
	if _, _, err := lock.LockAndGetToken(ctx); err != nil { // held
		return err
	}
	return work(ctx)
}

func unlockedWithTheOuterContext(ctx context.Context, lock *fenced.Lock) error {
	held, _, err := lock.LockAndGetToken(ctx)
	if err != nil {
		return err
	}
	defer lock.Unlock(ctx) // wrongctx
	return work(held)
}

func notUnlockedOnOnePath(ctx context.Context, lock *fenced.Lock) error {
	held, _, err := lock.LockAndGetToken(ctx) // lostunlock
	if err != nil {
		return err
	}
	if err := work(held); err != nil {
		return err
	}
	return lock.Unlock(held)
}

// A new thread in Java is another holder. A goroutine with the same context is not.
func inAGoroutine(ctx context.Context, lock *fenced.Lock) error {
	held, _, err := lock.LockAndGetToken(ctx)
	if err != nil {
		return err
	}
	defer lock.Unlock(held)
	go func() {
		inner, _, err := lock.LockAndGetToken(held) // holder
		if err != nil {
			return
		}
		defer lock.Unlock(inner)
		_ = work(inner)
	}()
	return work(held)
}

func compared(ctx context.Context, lock *fenced.Lock) (bool, error) {
	err := lock.Do(ctx, func(ctx context.Context, _ int64) error { return work(ctx) }, rlock.Wait(time.Second))
	if err == rlock.ErrNotAcquired { // errcompare
		return false, nil
	}
	return err != guard.ErrStale, err // errcompare
}

// A class that keeps its lock between two calls.
type account struct {
	lock *fenced.Lock
	held context.Context
}

func (a *account) Lock(ctx context.Context) (err error) {
	a.held, _, err = a.lock.LockAndGetToken(ctx) // callerctx
	return err
}

func (a *account) Unlock() error { return a.lock.Unlock(a.held) }
