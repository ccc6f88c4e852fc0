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
