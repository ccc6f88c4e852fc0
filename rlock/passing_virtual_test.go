package rlock_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/rlock"
)

// Inv12: what goes away by itself is ridden out by who waits, by a release and by questions: a proxy without its server, a server that cannot
// write to its disk.
func TestInv12_WhatPassesIsRiddenOut(t *testing.T) {
	for _, said := range []locktest.Reply{
		"upstream failure", "no upstream host",
		"MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk.",
	} {
		t.Run(string(said[:8]), func(t *testing.T) {
			locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
				spy := locktest.SpyOn(rdb)
				l := rlock.NewLock(newClient(t, rdb), "l")
				var until atomic.Int64 // in nanoseconds
				refuseFor := func(d time.Duration) { until.Store(time.Now().Add(d).UnixNano()) }
				spy.Wrap(func(_ []string, next func() error) error {
					if time.Now().UnixNano() < until.Load() {
						return said
					}
					return next()
				})
				for what, call := range map[string]func() error{
					"IsLocked": func() error { _, err := l.IsLocked(t.Context()); return err },
					"Lock, Unlock": func() error {
						held, err := l.Lock(t.Context())
						if err != nil {
							return err
						}
						refuseFor(3 * time.Second)
						return l.Unlock(held)
					},
					"TryLock": func() error {
						_, err := l.TryLock(t.Context(), 10*time.Second, time.Second)
						locktest.Sleep(2 * time.Second)
						return err
					},
				} {
					refuseFor(3 * time.Second)
					if err := call(); err != nil {
						t.Errorf("%s: %v", what, err)
					}
				}
				refuseFor(time.Minute)
				began := time.Now()
				_, err := l.Lock(t.Context())
				locktest.ErrorSays(t, err, string(said))
				if took := time.Since(began); took < 10*time.Second || took > 11*time.Second {
					t.Errorf("Lock took %v", took)
				}
				began = time.Now()
				_, err = l.TryLock(context.Background(), 0, 0)
				locktest.ErrorSays(t, err, string(said))
				locktest.Equal(t, "TryLock took", time.Since(began), 900*time.Millisecond)
				locktest.Sleep(time.Minute)
			})
		})
	}
}
