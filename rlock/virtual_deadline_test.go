package rlock_test

import (
	"context"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/rlock"
)

// Inv3, P6: the lease is counted from before the command was sent, not from its reply.
func TestVirtualDeadlineCountsFromSending(t *testing.T) {
	bhVirtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		spy := bhSpyOn(rdb)
		l := rlock.NewLock(bhClient(t, rdb), "l")
		bhOK(t, l.Unlock(bhLock(t, l, t.Context()))) // the server has the scripts
		spy.wrap(func(ctx context.Context, script string, next func() error) error {
			err := next()
			if script == "acquire" {
				time.Sleep(4 * time.Second) // on its way back
			}
			return err
		})
		sent := time.Now()
		held, err := l.LockLease(t.Context(), 10*time.Second)
		bhOK(t, err)
		<-held.Done()
		if after := time.Since(sent); after >= 10*time.Second {
			t.Errorf("the context ended %v after the command was sent, for a lease of 10s", after)
		}
		spy.wrap(nil)
		bhIs(t, l.Unlock(held), rlock.ErrLost)
		bhAsleep(time.Second)
	})
}
