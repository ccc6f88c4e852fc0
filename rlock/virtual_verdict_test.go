package rlock_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/rlock"
)

// Inv12: Redis has never answered: nobody may be told that somebody holds the lock, the second in line neither.
func TestVirtualSilenceIsNotAHolder(t *testing.T) {
	bhVirtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		spy := bhSpyOn(rdb)
		l := rlock.NewLock(bhClient(t, rdb), "l")
		spy.wrap(func(ctx context.Context, s string, next func() error) error {
			time.Sleep(20 * time.Second)
			return next()
		})
		a := bhGo(func() (context.Context, error) { return l.TryLock(t.Context(), 1000*time.Millisecond, 0) })
		time.Sleep(300 * time.Millisecond)
		b := bhGo(func() (context.Context, error) { return l.TryLock(t.Context(), 1000*time.Millisecond, 0) })
		bhIs(t, (<-a).err, context.DeadlineExceeded)
		if err := (<-b).err; errors.Is(err, rlock.ErrNotAcquired) {
			t.Errorf("nobody holds it, Redis never answered: %v", err)
		}
		spy.wrap(nil)
		bhAsleep(60 * time.Second)
	})
}

// A minute after Redis was silent nothing is left of that.
func TestVirtualSilenceIsForgotten(t *testing.T) {
	bhVirtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		spy := bhSpyOn(rdb)
		l := rlock.NewLock(bhClient(t, rdb), "l")
		held := bhLock(t, l, t.Context())
		var freeze atomic.Bool
		spy.wrap(func(ctx context.Context, s string, next func() error) error {
			if freeze.Load() && s == "acquire" {
				time.Sleep(2 * time.Second)
			}
			return next()
		})
		freeze.Store(true)
		_, err := l.TryLock(t.Context(), 1500*time.Millisecond, 0)
		bhIs(t, err, rlock.ErrNotAcquired)
		freeze.Store(false)
		bhAsleep(60 * time.Second)
		_, err = l.TryLock(t.Context(), 100*time.Millisecond, 0)
		if !errors.Is(err, rlock.ErrNotAcquired) {
			t.Errorf("a minute later, Redis well: %v", err)
		}
		bhOK(t, l.Unlock(held))
	})
}

// A re-entry that an orderly Unlock was faster than has lost nothing.
func TestVirtualReentryOvertakenByUnlock(t *testing.T) {
	bhVirtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		spy := bhSpyOn(rdb)
		l := rlock.NewLock(bhClient(t, rdb), "l")
		held := bhLock(t, l, context.WithoutCancel(t.Context()))
		spy.wrap(func(ctx context.Context, s string, next func() error) error {
			if s == "level" {
				time.Sleep(100 * time.Millisecond)
			}
			return next()
		})
		re := bhGo(func() (context.Context, error) { return l.Lock(context.WithoutCancel(held)) })
		bhAsleep(50 * time.Millisecond)
		bhOK(t, l.Unlock(held))
		got := <-re
		bhIs(t, got.err, rlock.ErrUnlocked)
	})
}

// Inv8: an Unlock that finds the key gone has told nobody by a message; the waiters of its own client look.
func TestVirtualWaiterAfterAnUnlockThatFoundNothing(t *testing.T) {
	bhVirtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		l := rlock.NewLock(bhClient(t, rdb), "l")
		held := bhLock(t, l, t.Context())
		w := bhGo(func() (context.Context, error) { return l.Lock(t.Context()) })
		bhAsleep(22 * time.Second)
		m.Del("l")
		began := time.Now()
		bhIs(t, l.Unlock(held), rlock.ErrLost)
		got := <-w
		bhOK(t, got.err)
		if got.at.Sub(began) > time.Second {
			t.Error("slept on a lock that its client knew to be free")
		}
	})
}

// A re-entry with wait 0 says what it has to say for a moment, as any call with wait 0.
func TestVirtualReentryThatDoesNotWait(t *testing.T) {
	bhVirtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		spy := bhSpyOn(rdb)
		l := rlock.NewLock(bhClient(t, rdb), "l")
		held := bhLock(t, l, t.Context())
		spy.wrap(func(ctx context.Context, s string, next func() error) error {
			if s == "level" {
				return &net.OpError{Op: "dial", Err: io.EOF}
			}
			return next()
		})
		began := time.Now()
		_, err := l.TryLock(held, 0, 0)
		if err == nil {
			t.Error("it re-entered without Redis")
		}
		if time.Since(began) > 1600*time.Millisecond {
			t.Errorf("it took %v", time.Since(began))
		}
		spy.wrap(nil)
	})
}

// DESIGN 7: where something refuses several slots in one command, the renewals are sent one by one, and in time.
func TestVirtualRenewalsOneByOne(t *testing.T) {
	bhVirtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		rdb.AddHook(bhCross{})
		c := bhClient(t, rdb, rlock.WithLease(3*time.Second))
		var ctxs []context.Context
		for i := range 100 {
			h, err := rlock.NewLock(c, fmt.Sprint("l", i)).Lock(t.Context())
			bhOK(t, err)
			ctxs = append(ctxs, h)
		}
		bhAsleep(20 * time.Second)
		lost := 0
		for _, h := range ctxs {
			if h.Err() != nil {
				lost++
			}
		}
		if lost > 0 {
			t.Errorf("%d of 100 lost, e.g. %v", lost, ctxs[0].Err())
		}
		bhOK(t, c.Close())
		bhAsleep(time.Second) // for what is under way
	})
}

type bhReply string

func (e bhReply) Error() string { return string(e) }
func (bhReply) RedisError()     {}

type bhCross struct{}

func (bhCross) DialHook(next redis.DialHook) redis.DialHook { return next }
func (bhCross) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}
func (bhCross) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if bhScript(cmd.Args()) == "renew" {
			time.Sleep(12 * time.Millisecond)
			if fmt.Sprint(cmd.Args()[2]) != "1" {
				err := bhReply("CROSSSLOT Keys in request don't hash to the same slot")
				cmd.SetErr(err)
				return err
			}
		}
		return next(ctx, cmd)
	}
}
