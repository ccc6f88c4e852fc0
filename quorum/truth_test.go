package quorum_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/quorum"
	"github.com/fencelock/fencelock/rlock"
)

// withLog returns the option that makes a client tell the log.
func withLog(log *locktest.Log) rlock.Option {
	return rlock.WithLogger(log.Logger())
}

// A client that is closed when all nodes have confirmed its releases has nothing to wait for, or to warn of.
func TestCloseAfterUnlock(t *testing.T) {
	for _, gently := range []bool{false, true} {
		virtual(t, 5, func(t *testing.T, s *site) {
			var log locktest.Log
			u := s.user(withLog(&log))
			locktest.NoError(t, u.lock("l").Do(t.Context(), func(context.Context, int64) error {
				locktest.Sleep(time.Millisecond) // all nodes have voted
				return nil
			}))
			locktest.Sleep(time.Millisecond) // and told of the release
			locktest.Equal(t, "nodes that have the lock", s.has("l"), 0)
			began := time.Now()
			if gently {
				locktest.NoError(t, u.Shutdown(t.Context()))
			} else {
				locktest.NoError(t, u.Close())
			}
			if took := time.Since(began); took > 10*time.Millisecond {
				t.Errorf("it took %v", took)
			}
			if strings.Contains(log.String(), "release") {
				t.Errorf("the log says:\n%s", log.String())
			}
		})
	}
}

// P3: a vote that a node hangs on for longer than the lease is released when it comes after all.
func TestP3_VoteLaterThanItsLease(t *testing.T) {
	virtual(t, 5, func(t *testing.T, s *site) {
		u := s.user()
		l := u.lock("l")
		teach(t, l)
		var hung atomic.Bool
		u.on(func(_ int, op string, _ []any, next func() error) error {
			if op == "vote" && hung.CompareAndSwap(false, true) {
				time.Sleep(5 * time.Second)
			}
			return next()
		}, 4)
		held, _, err := l.LockLeaseAndGetToken(t.Context(), 2*time.Second)
		locktest.NoError(t, err)
		synctest.Wait() // the vote is under way to the node that hangs: an Unlock before would keep it from being sent
		locktest.NoError(t, l.Unlock(held))
		locktest.Sleep(4900 * time.Millisecond)
		locktest.Equal(t, "the vote is under way", hung.Load(), true)
		locktest.Sleep(time.Second)
		locktest.Equal(t, "nodes that have the lock", s.has("l"), 0)
		locktest.Sleep(time.Minute)
		locktest.Equal(t, "records", quorum.Records(u.Client), 0)
	})
}

// P12: Unlock does not say that all was well where the nodes that could tell do not answer, and some of the others were
// freed by somebody else.
func TestP12_UnlockOfAForcedLock(t *testing.T) {
	virtual(t, 5, func(t *testing.T, s *site) {
		u := s.user()
		l := u.lock("l")
		held, _, err := l.LockAndGetToken(t.Context())
		locktest.NoError(t, err)
		locktest.Sleep(500 * time.Millisecond)
		admin := s.user()
		admin.down(0)
		freed, err := admin.lock("l").ForceUnlock(t.Context())
		locktest.NoError(t, err)
		locktest.Equal(t, "freed", freed, true)
		locktest.NoError(t, held.Err())
		u.down(3, 4)
		locktest.IsError(t, l.Unlock(held), rlock.ErrLost)
	})
}

// Inv12: the error of a majority that was there and went away names all the nodes that are missing, and counts them.
func TestInv12_NodesThatAreMissing(t *testing.T) {
	for _, late := range []bool{false, true} { // the second node without a vote has not failed yet when the acquire does
		virtual(t, 5, func(t *testing.T, s *site) {
			u := s.user()
			l := u.lock("l")
			u.down(3)
			u.on(func(_ int, op string, _ []any, next func() error) error {
				if op == "raise" {
					return errors.New("ERR refused")
				}
				return next()
			}, 2)
			u.on(func(int, string, []any, func() error) error {
				if late {
					time.Sleep(time.Millisecond)
				}
				return errRefused
			}, 4)
			_, _, err := l.TryLockAndGetToken(t.Context(), 0, 0)
			var e *quorum.MajorityError
			if !errors.As(err, &e) || len(e.Failed) != 3 {
				t.Errorf("an acquire: %v", err)
			}
		})
	}
	virtual(t, 5, func(t *testing.T, s *site) {
		var log locktest.Log
		u := s.user(withLog(&log))
		l := u.lock("l")
		u.down(3, 4)
		held, _, err := l.LockAndGetToken(t.Context())
		locktest.NoError(t, err)
		s.restart(2)
		locktest.Sleep(12 * time.Second)
		if !strings.Contains(log.String(), "2 of 5 nodes answered and count") {
			t.Errorf("a renewal:\n%s", log.String())
		}
		_ = l.Unlock(held)
	})
}
