package fenced_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/fencelock/fencelock/rlock"
)

// P48: holds that read at the same time share a token, and each phase has a larger one.
func TestP48_TokensOfPhases(t *testing.T) {
	l := fenced.NewRWLock(newClient(t, redistest.New(t)), "repo")
	ctx := t.Context()
	first, err := l.Read().Acquire(ctx)
	locktest.NoError(t, err)
	second, err := l.Read().Acquire(ctx)
	locktest.NoError(t, err)
	phase := first.Token() // an attempt without an answer may have taken one before
	locktest.Equal(t, "the token of the second", second.Token(), phase)
	_, err = l.Write().Acquire(ctx, rlock.Wait(0))
	locktest.IsError(t, err, rlock.ErrNotAcquired)
	locktest.NoError(t, first.Unlock(ctx))
	locktest.NoError(t, second.Unlock(ctx))
	locktest.NoError(t, l.Write().Do(ctx, func(held context.Context, token int64) error {
		if token <= phase {
			t.Errorf("Inv2: token %d writes after %d", token, phase)
		}
		_, err := l.Read().Acquire(ctx, rlock.Wait(0))
		locktest.IsError(t, err, rlock.ErrNotAcquired)
		now, there := fenced.TokenFrom(held, "repo")
		locktest.Equal(t, "its context has a token", there, true)
		locktest.Equal(t, "the token of its context", now, token)
		phase = token
		return nil
	}))
	third, err := l.Read().Acquire(ctx)
	locktest.NoError(t, err)
	if third.Token() <= phase {
		t.Errorf("Inv2: token %d reads after %d", third.Token(), phase)
	}
	locktest.NoError(t, third.Unlock(ctx))
}

// P48: with a floor too, whose tokens have 16 digits.
func TestP48_TokensOfPhasesWithAFloor(t *testing.T) {
	rdb := redistest.New(t)
	l := fenced.NewRWLock(newClient(t, rdb), "repo", fenced.WithClockFloor())
	first, second := hold(t, l.Read()), hold(t, l.Read())
	locktest.Equal(t, "the token of the second", second.Token(), first.Token())
	phase, _, _ := strings.Cut(rdb.HGet(t.Context(), "repo", "phase").Val(), ":")
	locktest.Equal(t, "the phase in Redis", phase, fmt.Sprint("t", first.Token()))
	locktest.NoError(t, first.Unlock(t.Context()))
	locktest.NoError(t, second.Unlock(t.Context()))
}

// P52: a level within the holder's own hold asks nobody, and a write lock within its own read lock is an error.
func TestP52_Levels(t *testing.T) {
	rdb := redistest.New(t)
	l := fenced.NewRWLock(newClient(t, rdb), "repo")
	reads, _, err := l.Read().LockAndGetToken(t.Context())
	locktest.NoError(t, err)
	_, _, err = l.Write().LockAndGetToken(reads)
	locktest.IsError(t, err, rlock.ErrUpgrade)
	_, _, err = l.Write().TryLockAndGetToken(reads, 0, 0)
	locktest.IsError(t, err, rlock.ErrUpgrade)
	_, err = l.Write().Acquire(reads)
	locktest.IsError(t, err, rlock.ErrUpgrade)
	again, _, err := l.Read().LockAndGetToken(reads)
	locktest.NoError(t, err)
	n, err := l.Read().HoldCount(again)
	locktest.NoError(t, err)
	locktest.Equal(t, "levels", n, 2)
	locktest.NoError(t, l.Read().Unlock(again))
	locktest.NoError(t, l.Read().Check(reads))
	locktest.NoError(t, l.Read().Unlock(reads))

	writes, token, err := l.Write().LockAndGetToken(t.Context())
	locktest.NoError(t, err)
	inner, same, err := l.Write().LockAndGetToken(writes)
	locktest.NoError(t, err)
	locktest.Equal(t, "the token of the level", same, token)
	inside, same, err := l.Read().LockAndGetToken(inner)
	locktest.NoError(t, err)
	locktest.Equal(t, "the token of the level that reads", same, token)
	locktest.NoError(t, l.Read().Check(inside))
	locktest.NoError(t, l.Read().Unlock(inside))
	locktest.NoError(t, l.Write().Unlock(inner))
	locktest.NoError(t, l.Write().Check(writes))
	is, err := l.Read().IsLocked(t.Context())
	locktest.NoError(t, err)
	locktest.Equal(t, "somebody reads", is, false)
	is, err = l.Write().IsLocked(t.Context())
	locktest.NoError(t, err)
	locktest.Equal(t, "somebody writes", is, true)
	locktest.NoError(t, l.Write().Unlock(writes))
	locktest.Equal(t, "keys that are left", len(rdb.Keys(t.Context(), "*").Val()), 1)
}

// P52: a holder whose read lock is lost is told so by every call that would write, and not that it reads.
func TestP52_WriteWithinALostRead(t *testing.T) {
	l := fenced.NewRWLock(newClient(t, redistest.New(t)), "repo")
	holder := rlock.NewHolder(t.Context())
	reads, _, err := l.Read().LockAndGetToken(holder)
	locktest.NoError(t, err)
	_, err = l.Read().ForceUnlock(t.Context())
	locktest.NoError(t, err)
	for _, ctx := range []context.Context{holder, reads} {
		_, _, err = l.Write().LockAndGetToken(ctx)
		locktest.IsError(t, err, rlock.ErrLost)
		_, _, err = l.Write().TryLockAndGetToken(ctx, 0, 0)
		locktest.IsError(t, err, rlock.ErrLost)
		_, err = l.Write().Acquire(ctx)
		locktest.IsError(t, err, rlock.ErrLost)
	}
	locktest.IsError(t, l.Read().Unlock(reads), rlock.ErrLost)
	locktest.NoError(t, l.Write().Do(holder, func(context.Context, int64) error { return nil }))
}

// P52: calls of one holder that read, beside each other and again and again, lose nothing as one unlocks the last level and another one comes.
func TestP52_CallsOfOneHolderComeAndGo(t *testing.T) {
	l := fenced.NewRWLock(newClient(t, redistest.New(t)), "repo")
	holder := rlock.NewHolder(t.Context())
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 100 {
				err := l.Read().Do(holder, func(ctx context.Context, _ int64) error { return ctx.Err() })
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
}

// A level with a lease of its own makes the hold last for that.
func TestP52_ALevelWithALongerLease(t *testing.T) {
	l := fenced.NewRWLock(newClient(t, redistest.New(t)), "repo")
	for what, side := range map[string]*fenced.Lock{"read": l.Read(), "write": l.Write()} {
		held, _, err := side.LockLeaseAndGetToken(t.Context(), 20*time.Second)
		locktest.NoError(t, err)
		inner, _, err := side.LockLeaseAndGetToken(held, time.Minute)
		locktest.NoError(t, err)
		left, err := side.Remaining(inner)
		locktest.NoError(t, err)
		ttl, err := side.TTL(inner)
		locktest.NoError(t, err)
		if left < 40*time.Second || ttl < 40*time.Second {
			t.Errorf("%s: %v by the client, %v by Redis", what, left, ttl)
		}
		locktest.NoError(t, side.Unlock(inner))
		locktest.NoError(t, side.Unlock(held))
	}
}

// ForceUnlock ends all holds that read.
func TestReadWriteForceUnlock(t *testing.T) {
	rdb := redistest.New(t)
	a, b := fenced.NewRWLock(newClient(t, rdb), "repo"), fenced.NewRWLock(newClient(t, rdb), "repo")
	first, _, err := a.Read().LockAndGetToken(t.Context())
	locktest.NoError(t, err)
	second, _, err := b.Read().LockAndGetToken(t.Context())
	locktest.NoError(t, err)
	freed, err := b.Write().ForceUnlock(t.Context())
	locktest.NoError(t, err)
	locktest.Equal(t, "somebody wrote", freed, false)
	freed, err = b.Read().ForceUnlock(t.Context())
	locktest.NoError(t, err)
	locktest.Equal(t, "somebody read", freed, true)
	locktest.IsError(t, b.Read().Check(second), rlock.ErrLost)
	locktest.IsError(t, a.Read().Unlock(first), rlock.ErrLost)
	locktest.IsError(t, b.Read().Unlock(second), rlock.ErrLost)
	writes, _, err := a.Write().LockAndGetToken(t.Context())
	locktest.NoError(t, err)
	freed, err = b.Write().ForceUnlock(t.Context())
	locktest.NoError(t, err)
	locktest.Equal(t, "somebody wrote", freed, true)
	locktest.IsError(t, a.Write().Unlock(writes), rlock.ErrLost)
}

// Plain locks and read-write locks of one name refuse each other's key, and change nothing there.
func TestReadWriteBesideAPlainLock(t *testing.T) {
	rdb := redistest.New(t)
	client := newClient(t, rdb)
	l, plain := fenced.NewRWLock(client, "repo"), fenced.NewLock(client, "repo")
	held, _, err := plain.LockAndGetToken(t.Context())
	locktest.NoError(t, err)
	before := rdb.HGetAll(t.Context(), "repo").String()
	for _, side := range []*fenced.Lock{l.Read(), l.Write()} {
		if _, _, err := side.LockAndGetToken(t.Context()); err == nil || errors.Is(err, rlock.ErrNotAcquired) {
			t.Errorf("got %v", err)
		}
		if _, err := side.IsLocked(t.Context()); err == nil {
			t.Error("somebody has it")
		}
	}
	locktest.Equal(t, "the hash", rdb.HGetAll(t.Context(), "repo").String(), before)
	locktest.NoError(t, plain.Unlock(held))
	held, _, err = l.Read().LockAndGetToken(t.Context())
	locktest.NoError(t, err)
	if _, _, err := plain.TryLockAndGetToken(t.Context(), 0, 0); err == nil || errors.Is(err, rlock.ErrNotAcquired) {
		t.Errorf("got %v", err)
	}
	locktest.NoError(t, l.Read().Unlock(held))
}

// Many clients read and write: nobody reads while somebody writes, and the tokens say who came when.
func TestReadWriteExcludes(t *testing.T) {
	rdb := redistest.New(t)
	var all sync.WaitGroup
	var readers, writers atomic.Int32
	var latest, together atomic.Int64
	for n := range 6 {
		l := fenced.NewRWLock(newClient(t, rdb), "repo")
		for g := range 4 {
			all.Go(func() {
				for i := range 25 {
					side, mine, others := l.Read(), &readers, &writers
					if writes := (n+g+i)%5 == 0; writes {
						side, mine, others = l.Write(), &writers, &readers
					}
					err := side.Do(t.Context(), func(ctx context.Context, token int64) error {
						now := mine.Add(1)
						if others.Load() > 0 || side == l.Write() && now > 1 {
							t.Errorf("%d here and %d there", now, others.Load())
						}
						together.Store(max(together.Load(), int64(now)))
						if before := latest.Swap(token); token < before {
							t.Errorf("Inv2: token %d after %d", token, before)
						}
						time.Sleep(time.Millisecond)
						mine.Add(-1)
						return nil
					})
					if err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
	all.Wait()
	if together.Load() < 2 {
		t.Error("nobody reads beside another")
	}
	locktest.Equal(t, "keys that are left", len(rdb.Keys(t.Context(), "*").Val()), 1)
}
