package quorum_test

import (
	"testing"
	"testing/synctest"
	"time"

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
		ok(t, err)
		u.up()
		s.restart(2)
		inner, next, err := l.LockAndGetToken(held)
		ok(t, err)
		if next <= token {
			t.Errorf("Inv2: token %d after %d", next, token)
		}
		synctest.Wait() // every node has answered, not only a majority
		equal(t, "nodes that have the lock", s.has("l"), 5)
		ok(t, l.Check(inner))
		count, err := l.HoldCount(inner)
		ok(t, err)
		equal(t, "hold count", count, 2)
		ok(t, l.Unlock(inner))
		ok(t, l.Unlock(held))
	})
	virtual(t, 5, func(t *testing.T, s *site) {
		u := s.user()
		u.down(3, 4)
		l := u.lock("l")
		held, err := l.Lock(t.Context())
		ok(t, err)
		inner, err := l.Lock(held)
		ok(t, err)
		u.up()
		s.restart(2)
		ok(t, l.Unlock(inner))
		ok(t, l.Check(held))
		asleep(time.Minute)
		ok(t, l.Check(held))
		ok(t, l.Unlock(held))
	})
}

// They see it where somebody has forced the lock open.
func TestLevelsOfAForcedLock(t *testing.T) {
	virtual(t, 5, func(t *testing.T, s *site) {
		u := s.user()
		u.down(3, 4)
		l := u.lock("l")
		held, err := l.Lock(t.Context())
		ok(t, err)
		u.up()
		freed, err := s.user().lock("l").ForceUnlock(t.Context())
		ok(t, err)
		equal(t, "freed", freed, true)
		_, err = l.Lock(held)
		is(t, err, rlock.ErrLost)
		equal(t, "nodes that have the lock", s.has("l"), 0)
		is(t, l.Unlock(held), rlock.ErrLost)
	})
}
