package rlock_test

import (
	"errors"
	"testing"
	"time"

	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/fencelock/fencelock/rlock"
)

// What WithReplicas buys: a master that is killed right after an acquire loses no lock, for the acquire has returned only
// when every replica had it. What it refuses: an acquire that no replica hears of, however healthy the master is.
func TestSentinelFailoverKeepsWhatWasConfirmed(t *testing.T) {
	t.Parallel()
	s := redistest.Watched(t, 2)
	opts := []rlock.Option{rlock.WithLease(failoverLease), rlock.WithPatience(failoverBound), rlock.WithReplicas(2, time.Second)}
	one, two := newClient(t, s.Client(), opts...), newClient(t, s.Client(), opts...)
	old := s.Master()
	locks := contest(t, one, two, 0, "a", "b", "c")
	old.Kill()
	s.AwaitMaster(old)
	for _, l := range locks {
		locktest.NoError(t, l.Check(l.held))
		if held, err := l.IsHeld(l.held); err != nil || !held {
			t.Errorf("%q is held, says the new master: %v, %v", l.Name(), held, err)
		}
	}
	var err error
	redistest.Eventually(t, failoverBound, func() bool { // one try may get no answer
		_, _, err = withClockFloor(two, "d").TryLockAndGetToken(t.Context(), 0, 0)
		return err == nil || errors.Is(err, rlock.ErrUnconfirmed)
	}, "the new master answers")
	locktest.IsError(t, err, rlock.ErrUnconfirmed) // it has one replica

	old.Restart() // and now two again
	s.Settle()
	awaitRenewals(t, locks)
	for _, l := range locks {
		l.intact(t)
		l.pass(t)
	}
	wantClean(t, []*rlock.Client{one, two}, s.Master())
}
