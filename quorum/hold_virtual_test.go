package quorum_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/rlock"
)

// P42, P41: a hold of a quorum is one in the hand too: it is extended on a majority, and hears who waits on the home of the lock.
func TestP42_AHoldOfAQuorum(t *testing.T) {
	virtual(t, 5, func(t *testing.T, s *site) {
		l, other := s.user().lock("l"), s.user().lock("l")
		h, err := l.Acquire(t.Context(), rlock.Lease(10*time.Second))
		locktest.NoError(t, err)
		if h.Token() <= 0 {
			t.Errorf("the token %d", h.Token())
		}
		locktest.NoError(t, h.Extend(t.Context(), 25*time.Second))
		waited := h.Waited()
		locktest.Sleep(20 * time.Second)
		locktest.NoError(t, h.Err())
		select {
		case <-waited:
			t.Error("somebody waits")
		default:
		}
		next := locktest.Start(func() error {
			late, err := other.Acquire(t.Context(), rlock.Wait(time.Minute))
			if err != nil {
				return err
			}
			if late.Token() <= h.Token() {
				t.Errorf("the token %d after %d", late.Token(), h.Token())
			}
			return late.Unlock(t.Context())
		})
		<-waited
		synctest.Wait()
		locktest.NoError(t, h.Unlock(t.Context()))
		locktest.NoError(t, <-next)
		locktest.ErrorSays(t, h.Extend(t.Context(), 24*time.Hour), "WithMaxLease")
	})
}

// Inv9: a hold that a majority has lost, so that its holder has lost the lock, is released on the other
// nodes when its holder unlocks it: nobody waits there for the end of its lease.
func TestInv9_ALostHoldIsReleasedOnTheOtherNodes(t *testing.T) {
	virtual(t, 5, func(t *testing.T, s *site) {
		l := s.user().lock("l")
		h, err := l.Acquire(t.Context())
		locktest.NoError(t, err)
		locktest.Sleep(time.Second) // it is on all nodes
		locktest.Equal(t, "nodes that have it", s.has("l"), 5)
		for i := range 3 {
			s.minis[i].Del("l")
		}
		locktest.IsError(t, h.Extend(t.Context(), 25*time.Second), rlock.ErrLost)
		locktest.Equal(t, "nodes that have it", s.has("l"), 2)
		locktest.IsError(t, h.Unlock(t.Context()), rlock.ErrLost)
		locktest.Sleep(time.Second)
		locktest.Equal(t, "nodes that have it", s.has("l"), 0)
	})
}
