package rlock_test

import (
	"context"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/fencelock/fencelock/rlock"
)

// newClient returns a client that is closed with the test.
func newClient(t testing.TB, rdb redis.UniversalClient, opts ...rlock.Option) *rlock.Client {
	t.Helper()
	c, err := rlock.New(rdb, opts...)
	locktest.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// newLock returns a lock called "l" on a server of its own.
func newLock(t testing.TB, opts ...rlock.Option) (*redis.Client, *rlock.Lock) {
	t.Helper()
	rdb := redistest.New(t)
	return rdb, rlock.NewLock(newClient(t, rdb, opts...), "l")
}

// take takes the lock.
func take(t testing.TB, l *rlock.Lock, ctx context.Context) context.Context {
	t.Helper()
	held, err := l.Lock(ctx)
	locktest.NoError(t, err)
	t.Cleanup(func() { runtime.KeepAlive(held) }) // a hold whose context is dropped is not renewed
	return held
}

// takeToken takes the lock and requires this token.
func takeToken(t testing.TB, l *fenced.Lock, ctx context.Context, want int64) context.Context {
	t.Helper()
	held, token, err := l.LockAndGetToken(ctx)
	locktest.NoError(t, err)
	locktest.Equal(t, "token", token, want)
	t.Cleanup(func() { runtime.KeepAlive(held) })
	return held
}

// queueUp starts waiters one after the other. Each is in the queue before the next one comes.
func queueUp(n int, wait func(i int)) (done func()) {
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { wait(i) })
		synctest.Wait()
	}
	return all.Wait
}
