package rlock_test

import (
	"context"
	"database/sql"
	"testing"
	"time"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/guard"
	"github.com/fencelock/fencelock/guard/redisguard"
	"github.com/fencelock/fencelock/guard/sqlguard"
	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/leader"
	"github.com/fencelock/fencelock/rlock"
)

// Inv12: a nil context is refused by each method, with a sentence that says what to pass.
func TestInv12_NilContext(t *testing.T) {
	rdb, l := newLock(t)
	client := newClient(t, rdb)
	f, sem, rw := fenced.NewLock(client, "f"), fenced.NewSemaphore(client, "s", 2), rlock.NewRWLock(client, "rw")
	held, err := fenced.NewLock(client, "held").Acquire(t.Context())
	locktest.NoError(t, err)
	election, err := leader.New(f)
	locktest.NoError(t, err)
	database, err := sqlguard.New(sqlguard.SQLite)
	locktest.NoError(t, err)
	writes, err := redisguard.New(rdb)
	locktest.NoError(t, err)
	nothing := func(context.Context) error { t.Error("fn ran"); return nil }
	withToken := func(context.Context, int64) error { t.Error("fn ran"); return nil }
	var none context.Context
	for name, call := range map[string]func() error{
		"Lock":               func() error { _, err := l.Lock(none); return err },
		"TryLock":            func() error { _, err := l.TryLock(none, time.Second, 0); return err },
		"LockLease":          func() error { _, _, err := f.LockLeaseAndGetToken(none, time.Second); return err },
		"LockAndGetToken":    func() error { _, _, err := f.LockAndGetToken(none); return err },
		"TryLockAndGetToken": func() error { _, _, err := f.TryLockAndGetToken(none, 0, 0); return err },
		"Do":                 func() error { return l.Do(none, nothing) },
		"Do, Wait 0":         func() error { return l.Do(none, nothing, rlock.Wait(0)) },
		"fenced Do":          func() error { return f.Do(none, withToken) },
		"Acquire":            func() error { _, err := l.Acquire(none); return err },
		"fenced Acquire":     func() error { _, err := f.Acquire(none, rlock.Reenter()); return err },
		"semaphore":          func() error { _, err := sem.Acquire(none); return err },
		"Read":               func() error { _, err := rw.Read().Lock(none); return err },
		"Write":              func() error { _, err := rw.Write().Lock(none); return err },
		"Unlock":             func() error { return l.Unlock(none) },
		"Check":              func() error { return l.Check(none) },
		"Token":              func() error { _, err := f.Token(none); return err },
		"Remaining":          func() error { _, err := l.Remaining(none); return err },
		"ForceUnlock":        func() error { _, err := l.ForceUnlock(none); return err },
		"IsLocked":           func() error { _, err := l.IsLocked(none); return err },
		"IsHeld":             func() error { _, err := l.IsHeld(none); return err },
		"HoldCount":          func() error { _, err := l.HoldCount(none); return err },
		"TTL":                func() error { _, err := l.TTL(none); return err },
		"Extend":             func() error { return held.Extend(none, time.Minute) },
		"a hold's Unlock":    func() error { return held.Unlock(none) },
		"Shutdown":           func() error { return client.Shutdown(none) },
		"an election": func() error {
			return election.Run(none, func(context.Context, *leader.Term) error { return nothing(none) })
		},
		"guard.Memory":       func() error { return guard.NewMemory().Do(none, "r", 1, nothing) },
		"guard.Memory Check": func() error { return guard.NewMemory().Check(none, "r", 1) },
		"sqlguard":           func() error { return database.Do(none, nil, "r", 1, func(*sql.Tx) error { return nothing(none) }) },
		"redisguard Do":      func() error { return writes.Writer("r", 1).Do(none, "SET", "k", 1).Err() },
		"redisguard Eval":    func() error { return writes.Writer("r", 1).Once("id").Eval(none, "return 1", nil).Err() },
		"redisguard Seen":    func() error { _, err := writes.Seen(none, "r"); return err },
	} {
		t.Run(name, func(t *testing.T) { locktest.ErrorSays(t, call(), "ctx is nil: pass") })
	}
	locktest.NoError(t, held.Unlock(t.Context()))
}
