package quorum_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/rlock"
)

// A re-entry and an inner Unlock see no loss where nodes have forgotten the hold, or never had it: a renewal would take it
// anew there, and so does a re-entry.
func TestLevelsWhereNodesForgot(t *testing.T) {
	virtual(t, 5, func(t *testing.T, s *site) {
		u := s.user()
		u.down(3, 4)
		l := u.lock("l")
		held, token, err := l.LockAndGetToken(t.Context())
		locktest.NoError(t, err)
		u.up()
		s.restart(2)
		inner, next, err := l.LockAndGetToken(held)
		locktest.NoError(t, err)
		if next <= token {
			t.Errorf("Inv2: token %d after %d", next, token)
		}
		synctest.Wait() // every node has answered, not only a majority
		locktest.Equal(t, "nodes that have the lock", s.has("l"), 5)
		locktest.NoError(t, l.Check(inner))
		count, err := l.HoldCount(inner)
		locktest.NoError(t, err)
		locktest.Equal(t, "hold count", count, 2)
		locktest.NoError(t, l.Unlock(inner))
		locktest.NoError(t, l.Unlock(held))
	})
	virtual(t, 5, func(t *testing.T, s *site) {
		u := s.user()
		u.down(3, 4)
		l := u.lock("l")
		held, _, err := l.LockAndGetToken(t.Context())
		locktest.NoError(t, err)
		inner, _, err := l.LockAndGetToken(held)
		locktest.NoError(t, err)
		u.up()
		s.restart(2)
		locktest.NoError(t, l.Unlock(inner))
		locktest.NoError(t, l.Check(held))
		locktest.Sleep(time.Minute)
		locktest.NoError(t, l.Check(held))
		locktest.NoError(t, l.Unlock(held))
	})
}

// They see it where somebody has forced the lock open.
func TestLevelsOfAForcedLock(t *testing.T) {
	virtual(t, 5, func(t *testing.T, s *site) {
		u := s.user()
		u.down(3, 4)
		l := u.lock("l")
		held, _, err := l.LockAndGetToken(t.Context())
		locktest.NoError(t, err)
		u.up()
		freed, err := s.user().lock("l").ForceUnlock(t.Context())
		locktest.NoError(t, err)
		locktest.Equal(t, "freed", freed, true)
		_, _, err = l.LockAndGetToken(held)
		locktest.IsError(t, err, rlock.ErrLost)
		locktest.Equal(t, "nodes that have the lock", s.has("l"), 0)
		locktest.IsError(t, l.Unlock(held), rlock.ErrLost)
	})
}

// Inv7: the context of a re-entry that has failed is no level of the hold: Unlock with it leaves the hold as it is.
func TestInv7_UnlockAfterAFailedReentry(t *testing.T) {
	virtual(t, 5, func(t *testing.T, s *site) {
		u := s.user()
		l := u.lock("l")
		held, _, err := l.LockAndGetToken(t.Context())
		locktest.NoError(t, err)
		locktest.Sleep(20 * time.Millisecond) // every node has the hold
		u.down(0, 1, 2)
		failed, _, err := l.TryLockAndGetToken(held, 0, 0)
		if err == nil {
			t.Fatal("two of five nodes are enough")
		}
		locktest.IsError(t, l.Unlock(failed), rlock.ErrNotHeld)
		_, err = l.Token(failed)
		locktest.IsError(t, err, rlock.ErrNotHeld)
		u.up()
		locktest.NoError(t, l.Check(held))
		locktest.Equal(t, "nodes that have the lock", s.has("l"), 5)
		locktest.NoError(t, l.Unlock(held))
	})
}
