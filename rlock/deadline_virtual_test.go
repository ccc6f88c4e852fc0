package rlock_test

import (
	"slices"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/rlock"
)

// Inv3, P6: the lease is counted from before the command was sent, not from its reply.
func TestDeadlineCountsFromSending(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		spy := locktest.SpyOn(rdb)
		l := rlock.NewLock(newClient(t, rdb), "l")
		locktest.NoError(t, l.Unlock(take(t, l, t.Context()))) // the server has the scripts
		spy.Wrap(func(ops []string, next func() error) error {
			err := next()
			if slices.Contains(ops, "acquire") {
				time.Sleep(4 * time.Second) // on its way back
			}
			return err
		})
		sent := time.Now()
		held, err := l.LockLease(t.Context(), 10*time.Second)
		locktest.NoError(t, err)
		<-held.Done()
		if after := time.Since(sent); after >= 10*time.Second {
			t.Errorf("the context ended %v after the command was sent, for a lease of 10s", after)
		}
		spy.Wrap(nil)
		locktest.IsError(t, l.Unlock(held), rlock.ErrLost)
		locktest.Sleep(time.Second)
	})
}
