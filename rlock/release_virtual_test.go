package rlock_test

import (
	"context"
	"io"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/rlock"
)

// An attempt that its caller has given up is released as soon as it is answered, and one that took nothing is not (P3).
func TestP3_GivenUpAcquireIsReleasedWhenAnswered(t *testing.T) {
	bhVirtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		var late handSpy
		rdb.AddHook(&late)
		c := bhClient(t, rdb)
		giveUp := func(name string) {
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
			defer cancel()
			_, err := rlock.NewLock(c, name).Lock(ctx)
			bhIs(t, err, context.DeadlineExceeded)
		}
		warm := rlock.NewLock(c, "l")
		bhOK(t, warm.Unlock(bhLock(t, warm, t.Context()))) // the server knows the scripts
		late.reset()
		late.wrap(func(ops []string, next func() error) error {
			defer time.Sleep(50 * time.Millisecond) // executed, and answered late
			return next()
		})
		giveUp("l")
		bhAsleep(29 * time.Millisecond)
		if !m.Exists("l") {
			t.Fatal("the lock was not taken")
		}
		bhAsleep(2 * time.Millisecond) // the answer has come
		if m.Exists("l") {
			t.Error("the lock is still taken")
		}
		bhAsleep(time.Second)
		bhEqual(t, "commands", late.String(), "acquire unlock")
		m.HSet("held", "somebody:1", "1")
		m.SetTTL("held", time.Hour)
		giveUp("held")
		bhAsleep(time.Second)
		bhEqual(t, "commands", late.String(), "acquire unlock acquire")
		bhEqual(t, "books", c.Books(), "")
	})
}

// A Redis that was away for longer than the releases are repeated in quick succession has them a second after it is back:
// those of an Unlock, of an acquire that was given up, and all of them at once when the client is closed (P3, P12).
func TestP3_ReleasesAfterAnOutage(t *testing.T) {
	for name, closes := range map[string]bool{"the client goes on": false, "Close meets the end of it": true} {
		t.Run(name, func(t *testing.T) {
			bhVirtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
				var spy handSpy
				c := bhClient(t, rdb, rlock.WithUnlockTimeout(3*time.Second), rlock.WithLease(3*time.Minute))
				var held []context.Context
				locks := []*rlock.Lock{rlock.NewLock(c, "a"), rlock.NewLock(c, "b")}
				for _, l := range locks {
					held = append(held, bhLock(t, l, t.Context()))
				}
				rdb.AddHook(&spy)
				spy.wrap(func([]string, func() error) error { return io.EOF })
				for i, l := range locks {
					if err := l.Unlock(held[i]); err == nil {
						t.Fatal("unlocked, though Redis is away")
					}
				}
				bhAsleep(time.Minute)
				back := func() { spy.wrap(nil) }
				if closes {
					time.AfterFunc(1500*time.Millisecond, back)
					began := time.Now()
					bhOK(t, c.Close())
					if took := time.Since(began); took > 2*time.Second {
						t.Errorf("Close took %v", took)
					}
				} else {
					back()
					bhAsleep(1100 * time.Millisecond)
				}
				if m.Exists("a") || m.Exists("b") {
					t.Error("a lock is still taken")
				}
			})
		})
	}
}
