package interop

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/rlock"
)

// Redisson's read and write locks keep their hash at the lock's own name. To us that is no lock: an error says so, and
// nothing of it is changed. They do not know our fields either.
func TestRedissonsReadWriteLockIsRefused(t *testing.T) {
	for _, other := range []kind{"read", "write"} {
		t.Run(string(other), func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			c, client := s.client(), s.java()
			java := client.lock("a", other, "l")
			java.lock()
			for _, k := range kinds {
				ours := newLock(c, k, "l")
				refused := func(call string, err error) {
					t.Helper()
					if !redis.HasErrorPrefix(err, "WRONGTYPE") || !strings.Contains(err.Error(), "'mode'") {
						t.Errorf("%s: %v", call, err)
					}
				}
				_, err := ours.IsLocked(t.Context())
				refused("IsLocked", err)
				_, err = ours.TTL(t.Context())
				refused("TTL", err)
				_, err = ours.ForceUnlock(t.Context())
				refused("ForceUnlock", err)
				_, err = ours.Lock(t.Context())
				refused("Lock", err)
				_, err = ours.TryLock(t.Context(), 0, 0)
				refused("TryLock", err)
			}
			java.is("isHeldByCurrentThread", true)
			java.unlock()
			free(t, newLock(c, plainKind, "l"))
		})
	}
	t.Run("a read lock takes what we hold", func(t *testing.T) { // as docs/redisson.md warns
		t.Parallel()
		s := newSite(t)
		ours, java := rlock.NewLock(s.client(), "l"), s.java().lock("a", "read", "l")
		held, _ := take(t, ours, t.Context())
		java.is("tryLock", true, "wait", "0")
		_, err := ours.IsHeld(held)
		if !redis.HasErrorPrefix(err, "WRONGTYPE") {
			t.Errorf("IsHeld: %v", err)
		}
		noError(t, ours.Unlock(held))
		java.is("isHeldByCurrentThread", true)
	})
}

// A fair lock's hash is that of an RLock: it and ours exclude each other. Its waiters do not hear of our release.
func TestRedissonsFairLock(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c, client := s.client(), s.java()
	ours, java := rlock.NewLock(c, "l"), client.lock("a", "fair", "l")
	java.lock()
	_, err := ours.TryLock(t.Context(), 0, 0)
	isError(t, err, rlock.ErrNotAcquired)
	freed, err := ours.ForceUnlock(t.Context())
	noError(t, err)
	equal(t, "freed", freed, true)
	java.is("isHeldByCurrentThread", false)

	held, err := ours.LockLease(t.Context(), shortLease)
	noError(t, err)
	java.is("tryLock", false, "wait", "0")
	began := time.Now()
	waits := java.startLock()
	s.asleep("redisson_lock__channel:{l}:"+s.fairWaiter("l"), 1)
	noError(t, ours.Unlock(held))
	noError(t, await(t, waits, shortLease+soon, "the fair waiter").err())
	t.Logf("the fair waiter has the lock %v after our acquire of %v", time.Since(began), shortLease)
	java.unlock()
}

// fairWaiter is the field of who is first in a fair lock's line.
func (s *site) fairWaiter(name string) (field string) {
	s.t.Helper()
	deadline := time.Now().Add(soon)
	for field == "" && time.Now().Before(deadline) {
		field = s.rdb.LIndex(context.Background(), "redisson_lock_queue:{"+name+"}", 0).Val()
	}
	return field
}
