package fenced_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/internal/redistest"
	"github.com/fencelock/fencelock/rlock"
)

func TestSmoke(t *testing.T) {
	rdb := redistest.New(t)
	c, err := rlock.New(rdb)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	l := fenced.NewLock(c, "a")
	ctx := t.Context()
	h, tok, err := l.LockAndGetToken(ctx)
	if err != nil || tok != 1 {
		t.Fatal(tok, err)
	}
	h2, tok, err := l.LockAndGetToken(h)
	if err != nil || tok != 2 {
		t.Fatal(tok, err)
	}
	if n, err := l.HoldCount(h2); n != 2 || err != nil {
		t.Fatal(n, err)
	}
	if _, err := l.TryLock(ctx, 0, 0); !errors.Is(err, rlock.ErrNotAcquired) {
		t.Fatal(err)
	}
	got := make(chan error)
	go func() {
		w, err := l.TryLock(ctx, 3*time.Second, 0)
		if err == nil {
			err = l.Unlock(w)
		}
		got <- err
	}()
	time.Sleep(50 * time.Millisecond)
	if err := l.Unlock(h2); err != nil {
		t.Fatal(err)
	}
	if err := l.Unlock(h); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	if err := <-got; err != nil {
		t.Fatal(err)
	}
	t.Log(time.Since(start), context.Cause(h), h.Err())
	if _, err := l.Lock(h); !errors.Is(err, rlock.ErrUnlocked) {
		t.Fatal(err)
	}
	t.Log(l.Unlock(h), l.Unlock(ctx))
	if l, err := l.IsLocked(ctx); l || err != nil {
		t.Fatal(err)
	}
}
