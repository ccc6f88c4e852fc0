package rlocktest_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/rlock"
	"github.com/fencelock/fencelock/rlocktest"
)

// The context of Context behaves as that of a lock does, after the loss and after its caller's end.
func TestContextIsLikeThatOfALock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := rlocktest.New(t)
		ctx, cancel := context.WithCancel(t.Context())
		lock := fenced.NewLock(s.Client(), "x")
		taken := func() (context.Context, func()) {
			held, _, err := lock.LockAndGetToken(ctx)
			locktest.NoError(t, err)
			return held, func() { s.Steal("x").Unlock() }
		}
		made := func() (context.Context, func()) { return rlocktest.Context(ctx, "x", 7) }
		for name, begin := range map[string]func() (context.Context, func()){"a lock's": taken, "Context's": made} {
			held, lose := begin()
			locktest.NoError(t, held.Err())
			if _, ok := fenced.TokenFrom(held, "x"); !ok {
				t.Errorf("%s: no token", name)
			}
			child, end := context.WithCancel(held)
			lose()
			<-held.Done()
			if _, ok := fenced.TokenFrom(held, "x"); ok {
				t.Errorf("%s: a token after the loss", name)
			}
			locktest.IsError(t, held.Err(), rlock.ErrLost, context.Canceled)
			locktest.IsError(t, context.Cause(held), rlock.ErrLost)
			locktest.ErrorSays(t, held.Err(), `rlock: "x": lock lost: the lock was released by someone else, or its key is gone`)
			<-child.Done()
			locktest.IsError(t, context.Cause(child), rlock.ErrLost)
			end()
		}
		last, lose := taken()
		lose()
		locktest.IsError(t, lock.Unlock(last), rlock.ErrLost)

		held, lose := made()
		cancel()
		<-held.Done()
		locktest.IsError(t, held.Err(), context.Canceled)
		lose()
		locktest.IsNotError(t, held.Err(), rlock.ErrLost)
	})
}
