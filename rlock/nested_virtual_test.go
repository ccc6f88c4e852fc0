package rlock_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/fencelock/fencelock/rlock"
)

const logNested = "rlock: a call waits for a hold of its own client, for as long as a lease by now; if this is meant as a nested call, pass the context that Lock returned"

// A nested call that was given the context from before Lock, or another holder's, waits for itself: the log says so, once
// for the hold, when a lease has gone by.
func TestNestedCallWithTheOuterContext(t *testing.T) {
	for name, of := range map[string]func(outer, held context.Context) context.Context{
		"no holder":      func(outer, _ context.Context) context.Context { return outer },
		"another holder": func(_, held context.Context) context.Context { return rlock.NewHolder(held) },
	} {
		t.Run(name, func(t *testing.T) {
			locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
				k := new(locktest.Log)
				l := rlock.NewLock(newClient(t, rdb, rlock.WithLease(20*time.Second), rlock.WithLogger(slog.New(k))), "mine")
				held := take(t, l, t.Context())
				began, done := time.Now(), make(chan error, 2)
				for range 2 {
					go func() {
						done <- l.Do(of(t.Context(), held), func(context.Context) error { return nil })
					}()
				}
				locktest.Sleep(20 * time.Second)
				locktest.Equal(t, "lines before a lease has gone by", len(logLines(k, logNested)), 0)
				locktest.Sleep(5 * time.Minute)
				lines := logLines(k, logNested)
				if len(lines) != 1 || lines[0].lock != "mine" || lines[0].level != slog.LevelWarn || lines[0].at.Sub(began) > 32*time.Second {
					t.Errorf("the log has %v", lines)
				}
				locktest.NoError(t, l.Unlock(held))
				locktest.NoError(t, <-done)
				locktest.NoError(t, <-done)
			})
		})
	}
}

// A call that waits for a lease, or for many, while holds of its client come and go, or behind one that was taken for
// longer, or behind another client, is nothing to warn of.
func TestContentionIsNoNestedCall(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		k := new(locktest.Log)
		c := newClient(t, rdb, rlock.WithLease(20*time.Second), rlock.WithLogger(slog.New(k)))
		stranger := newClient(t, rdb, rlock.WithLogger(slog.New(slog.DiscardHandler)))

		busy, done := rlock.NewLock(c, "busy"), make(chan error)
		for range 6 {
			go func() {
				done <- busy.Do(t.Context(), func(context.Context) error {
					time.Sleep(19 * time.Second)
					return nil
				})
			}()
		}
		long := rlock.NewLock(c, "long")
		_, err := long.LockLease(t.Context(), 2*time.Minute)
		locktest.NoError(t, err)
		behind := locktest.StartLock(func() (context.Context, error) { return long.Lock(t.Context()) })
		theirs := rlock.NewLock(stranger, "theirs")
		held := take(t, theirs, t.Context())
		there := locktest.StartLock(func() (context.Context, error) { return rlock.NewLock(c, "theirs").Lock(t.Context()) })

		for range 6 {
			locktest.NoError(t, <-done)
		}
		locktest.Sleep(time.Minute)
		locktest.NoError(t, theirs.Unlock(held))
		for _, ch := range []<-chan locktest.Result{behind, there} {
			locktest.NoError(t, redistest.Await(t, time.Minute, ch, "a waiter gets the lock").Err)
		}
		if lines := logLines(k, logNested); len(lines) > 0 {
			t.Errorf("the log has %v", lines)
		}
	})
}

// Two short waits behind one long hold, with nobody waiting in between, are no nested call.
func TestShortWaitsAreNoNestedCall(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, _ *miniredis.Miniredis, rdb *redis.Client) {
		log := new(locktest.Log)
		l := rlock.NewLock(newClient(t, rdb, rlock.WithLease(20*time.Second), rlock.WithLogger(slog.New(log))), "mine")
		held := take(t, l, t.Context())
		for range 2 {
			ctx, cancel := context.WithTimeout(t.Context(), 11*time.Second)
			_, err := l.Lock(ctx)
			cancel()
			locktest.IsError(t, err, context.DeadlineExceeded)
			locktest.Sleep(time.Hour)
		}
		locktest.Equal(t, "lines", len(logLines(log, logNested)), 0)
		locktest.NoError(t, l.Unlock(held))
	})
}
