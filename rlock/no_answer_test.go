package rlock_test

import (
	"context"
	"crypto/tls"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/realtime"
	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/fencelock/fencelock/rlock"
)

// Inv12: a client with TLS on a port without it. Neither end says anything more; the error names the handshake.
func TestInv12_TLSOnAPlainPort(t *testing.T) {
	realtime.Test(t, "calls that give up within 2 s")
	server := realServer(t)
	c := newClient(t, server.Client(func(o *redis.Options) { o.TLSConfig = &tls.Config{ServerName: "redis", MinVersion: tls.VersionTLS12} }),
		rlock.WithPatience(2*time.Second), rlock.WithUnlockTimeout(time.Millisecond))
	l := rlock.NewLock(c, "a")
	for _, call := range []struct {
		what  string
		bound time.Duration
		call  func() error
	}{
		{"TryLock", time.Second, func() error { _, err := l.TryLock(t.Context(), 0, 0); return err }},
		{"Lock", 2 * time.Second, func() error { _, err := l.Lock(t.Context()); return err }},
		{"IsLocked", 2 * time.Second, func() error { _, err := l.IsLocked(t.Context()); return err }},
		{"ForceUnlock", 2 * time.Second, func() error { _, err := l.ForceUnlock(t.Context()); return err }},
	} {
		began := time.Now()
		err := call.call()
		within(t, began, call.bound, call.what)
		wantTold(t, err, "TLS handshake", server.Addr())
		locktest.IsError(t, err, context.DeadlineExceeded)
	}
}

// Inv12: a call that does not wait has its second on a server that stands still.
func TestInv12_OneTryOnAFrozenServer(t *testing.T) {
	server := realServer(t)
	l := rlock.NewLock(newClient(t, server.Client(), rlock.WithUnlockTimeout(time.Second)), "a")
	locktest.NoError(t, l.Unlock(take(t, l, t.Context())))
	server.Freeze()
	began := time.Now()
	_, err := l.TryLock(t.Context(), 0, 0)
	within(t, began, time.Second, "TryLock")
	wantTold(t, err, "no answer from Redis")
	locktest.IsError(t, err, context.DeadlineExceeded)
	server.Thaw()
	redistest.Eventually(t, bound, func() bool { return server.Client().Exists(t.Context(), "a").Val() == 0 }, "what the server has done late is released")
}
