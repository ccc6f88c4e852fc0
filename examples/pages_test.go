// Package examples holds the runnable examples, each in a folder of its own, and tries what docs/guards.md and docs/errors.md say of lost counters, nested calls and keys.
package examples

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/internal/test/realtime"
	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/fencelock/fencelock/rlock"
)

func noError(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// docs/guards.md: setting the counter, after which the next token is larger than all that storage has seen.
func TestSetTheCounter(t *testing.T) {
	rdb := redistest.New(t)
	client, err := rlock.New(rdb)
	noError(t, err)
	defer client.Close()
	ctx := t.Context()
	lock := fenced.NewLock(client, "lock:account:42")
	next := func() int64 {
		held, token, err := lock.TryLockAndGetToken(ctx, 0, 0)
		noError(t, err)
		noError(t, lock.Unlock(held))
		return token
	}
	if next() != 1 || next() != 2 {
		t.Error("tokens do not begin at 1")
	}
	noError(t, rdb.FlushAll(ctx).Err())
	if token := next(); token != 1 {
		t.Errorf("after FLUSHALL: %d", token)
	}
	noError(t, rdb.Set(ctx, "redisson_lock_token:{lock:account:42}", 1873, 0).Err())
	if token := next(); token != 1874 {
		t.Errorf("after the counter was set: %d", token)
	}
	floor := fenced.NewLock(client, "lock:account:43", fenced.WithClockFloor())
	_, token, err := floor.TryLockAndGetToken(ctx, 0, 0)
	noError(t, err)
	if token < 1_700_000_000_000_000 {
		t.Errorf("with a clock floor: %d", token)
	}
}

// docs/errors.md: a call with another context waits for its own process.
func TestNestedCallWithAnotherContext(t *testing.T) {
	realtime.Test(t, "a wait of 50 ms")
	rdb := redistest.New(t)
	client, err := rlock.New(rdb)
	noError(t, err)
	defer client.Close()
	lock := fenced.NewLock(client, "lock:account:42")
	noError(t, lock.Do(t.Context(), func(held context.Context, _ int64) error {
		if _, _, err := lock.TryLockAndGetToken(t.Context(), 50*time.Millisecond, 0); !errors.Is(err, rlock.ErrNotAcquired) {
			t.Errorf("with the context from before Lock: %v", err)
		}
		again, _, err := lock.TryLockAndGetToken(held, 50*time.Millisecond, 0)
		noError(t, err)
		return lock.Unlock(again)
	}))
}

// docs/errors.md: a key that is something else is an error at once, and is left alone.
func TestNameIsTheKey(t *testing.T) {
	rdb := redistest.New(t)
	client, err := rlock.New(rdb)
	noError(t, err)
	defer client.Close()
	noError(t, rdb.Set(t.Context(), "account:42", "data", 0).Err())
	err = fenced.NewLock(client, "account:42").Do(t.Context(), func(context.Context, int64) error { return nil })
	if err == nil || !strings.Contains(err.Error(), "WRONGTYPE") {
		t.Error(err)
	}
	if rdb.Get(t.Context(), "account:42").Val() != "data" {
		t.Error("the data is gone")
	}
}
