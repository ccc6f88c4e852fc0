package rlock_test

import (
	"context"
	"io"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/rlock"
)

// An attempt that its caller has given up is released as soon as it is answered, and one that took nothing is not (P3).
func TestP3_GivenUpAcquireIsReleasedWhenAnswered(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		late := locktest.SpyOn(rdb)
		c := newClient(t, rdb)
		giveUp := func(name string) {
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
			defer cancel()
			_, err := rlock.NewLock(c, name).Lock(ctx)
			locktest.IsError(t, err, context.DeadlineExceeded)
		}
		warm := rlock.NewLock(c, "l")
		locktest.NoError(t, warm.Unlock(take(t, warm, t.Context()))) // the server knows the scripts
		late.Reset()
		late.Wrap(func(ops []string, next func() error) error {
			defer time.Sleep(50 * time.Millisecond) // executed, and answered late
			return next()
		})
		giveUp("l")
		locktest.Sleep(29 * time.Millisecond)
		if !m.Exists("l") {
			t.Fatal("the lock was not taken")
		}
		locktest.Sleep(2 * time.Millisecond) // the answer has come
		if m.Exists("l") {
			t.Error("the lock is still taken")
		}
		locktest.Sleep(time.Second)
		locktest.Equal(t, "commands", late.String(), "acquire unlock")
		m.HSet("held", "somebody:1", "1")
		m.SetTTL("held", time.Hour)
		giveUp("held")
		locktest.Sleep(time.Second)
		locktest.Equal(t, "commands", late.String(), "acquire unlock acquire")
		locktest.Equal(t, "books", c.Books(), "")
	})
}

// P3: a hold whose lease was over before its Unlock is released all the same: Redis keeps it for a margin longer than it was trusted. Who sees
// the end first, Unlock or the watchdog, changes nothing.
func TestP3_AHoldThatRanOutIsReleased(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		const lease, margin = 500 * time.Millisecond, 6 * time.Millisecond
		c := newClient(t, rdb)
		l := rlock.NewLock(c, "l")
		for range 100 {
			began := time.Now()
			held, err := l.LockLease(t.Context(), lease)
			locktest.NoError(t, err)
			time.Sleep(time.Until(began.Add(lease - margin)))
			locktest.IsError(t, l.Unlock(held), rlock.ErrLost)
			locktest.Sleep(margin / 2)
			if m.Exists("l") {
				t.Fatalf("the lock is still taken, for %v", m.TTL("l"))
			}
			locktest.Sleep(time.Second)
		}
		wantFree(t, m, 0, c)
	})
}

// A Redis that was away, or loading, for longer than the releases are repeated in quick succession has them a second after it is back:
// those of an Unlock, of an acquire that was given up, and all of them at once when the client is closed (P3, P12).
func TestP3_ReleasesAfterAnOutage(t *testing.T) {
	for name, c := range map[string]struct {
		closes bool
		says   error
	}{
		"the client goes on":                              {says: io.EOF},
		"Close meets the end of it":                       {says: io.EOF, closes: true},
		"it was loading, and the client goes on":          {says: locktest.Reply("LOADING Redis is loading the dataset in memory")},
		"it was loading, and Close meets the end of that": {says: locktest.Reply("LOADING Redis is loading the dataset in memory"), closes: true},
	} {
		t.Run(name, func(t *testing.T) {
			locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
				client := newClient(t, rdb, rlock.WithUnlockTimeout(3*time.Second), rlock.WithLease(3*time.Minute))
				var held []context.Context
				locks := []*rlock.Lock{rlock.NewLock(client, "a"), rlock.NewLock(client, "b")}
				for _, l := range locks {
					held = append(held, take(t, l, t.Context()))
				}
				spy := locktest.SpyOn(rdb)
				spy.Wrap(func([]string, func() error) error { return c.says })
				for i, l := range locks {
					if err := l.Unlock(held[i]); err == nil {
						t.Fatal("unlocked, though Redis is away")
					}
				}
				locktest.Sleep(time.Minute)
				back := func() { spy.Wrap(nil) }
				if c.closes {
					time.AfterFunc(1500*time.Millisecond, back)
					began := time.Now()
					locktest.NoError(t, client.Close())
					if took := time.Since(began); took > 2*time.Second {
						t.Errorf("Close took %v", took)
					}
				} else {
					back()
					locktest.Sleep(1100 * time.Millisecond)
				}
				if m.Exists("a") || m.Exists("b") {
					t.Error("a lock is still taken")
				}
			})
		})
	}
}

// A hold of a long lease whose release Redis refuses is released half a minute after Redis refuses no longer, however long that took (P3).
func TestP3_RefusedReleaseOfALongLease(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		c := newClient(t, rdb)
		l := rlock.NewLock(c, "l")
		held, err := l.LockLease(t.Context(), 24*time.Hour)
		locktest.NoError(t, err)
		spy := locktest.SpyOn(rdb)
		spy.Wrap(func([]string, func() error) error { return locktest.Reply("ERR refused by somebody on the way") })
		if err := l.Unlock(held); err == nil {
			t.Error("Unlock is confirmed by nobody")
		}
		locktest.Sleep(2 * time.Hour)
		spy.Wrap(nil)
		locktest.Sleep(31 * time.Second)
		if m.Exists("l") {
			t.Error("the lock is still taken")
		}
		locktest.Equal(t, "books", c.Books(), "")
	})
}
