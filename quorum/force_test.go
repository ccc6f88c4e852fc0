package quorum_test

import (
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/rlock"
)

// ForceUnlock says of one hold to one caller only that it has released it.
func TestForceUnlockByTwo(t *testing.T) {
	virtual(t, 5, func(t *testing.T, s *site) {
		owner := s.user()
		two := []*user{s.user(), s.user()}
		for _, u := range two {
			u.on(func(_ int, op string, _ []any, next func() error) error {
				time.Sleep(rand.N(time.Millisecond))
				return next()
			}, 0, 1, 2, 3, 4)
		}
		freed := 0
		for round := range 60 {
			if round%2 == 1 {
				owner.down(round%5, (round+1)%5) // it has a bare majority
			}
			_, _, err := owner.lock("l").LockLeaseAndGetToken(t.Context(), 30*time.Second)
			locktest.NoError(t, err)
			owner.up()
			if round%2 == 0 {
				locktest.Sleep(20 * time.Millisecond) // it has all nodes
			}
			var all sync.WaitGroup
			var said atomic.Int32
			for _, u := range two {
				all.Go(func() {
					done, err := u.lock("l").ForceUnlock(t.Context())
					if err != nil {
						t.Error(err)
					}
					if done {
						said.Add(1)
					}
				})
			}
			all.Wait()
			if said.Load() > 1 {
				t.Fatalf("round %d: both say that they have released it", round)
			}
			freed += int(said.Load())
			if locked, err := owner.lock("l").IsLocked(t.Context()); err != nil || locked {
				t.Fatalf("round %d: locked: %v, %v", round, locked, err)
			}
			locktest.Sleep(time.Second)
		}
		t.Logf("one of the two said so in %d of 60 rounds", freed)
		if freed < 10 { // where the owner too hears of it, and releases its part, nobody says so
			t.Errorf("one of the two said so in %d of 60 rounds", freed)
		}
	})
}

// Who forces a hold open alone says so, also where a node of its bare majority restarts empty after it was looked at.
func TestForceUnlockWhileANodeRestarts(t *testing.T) {
	virtual(t, 5, func(t *testing.T, s *site) {
		owner, u := s.user(), s.user()
		owner.down(3, 4)
		_, _, err := owner.lock("l").LockLeaseAndGetToken(t.Context(), 30*time.Second)
		locktest.NoError(t, err)
		var once sync.Once
		u.on(func(_ int, op string, _ []any, next func() error) error {
			if op == "withdraw" {
				once.Do(func() { s.restart(0) })
			}
			return next()
		}, 0, 1, 2, 3, 4)
		freed, err := u.lock("l").ForceUnlock(t.Context())
		locktest.NoError(t, err)
		locktest.Equal(t, "freed", freed, true)
		locktest.Equal(t, "nodes that have the lock", s.has("l"), 0)
	})
}

// A ForceUnlock that too few nodes have confirmed is an error, and its hold may go on: then it is released like any other.
func TestHoldAfterAForceUnlockThatFailed(t *testing.T) {
	virtual(t, 5, func(t *testing.T, s *site) {
		u := s.user(rlock.WithPatience(time.Second))
		l := u.lock("l")
		held, _, err := l.LockAndGetToken(t.Context())
		locktest.NoError(t, err)
		var away atomic.Bool
		away.Store(true)
		u.on(func(_ int, op string, _ []any, next func() error) error {
			if away.Load() && strings.Contains(op, "withdraw") {
				return errRefused
			}
			return next()
		}, 2, 3, 4)
		if _, err := l.ForceUnlock(t.Context()); err == nil {
			t.Error("ForceUnlock is confirmed by two of five nodes")
		}
		away.Store(false)
		locktest.Sleep(40 * time.Second)
		locktest.NoError(t, held.Err())
		locktest.NoError(t, l.Unlock(held))
		locktest.Sleep(time.Minute)
		locktest.Equal(t, "nodes that have the lock", s.has("l"), 0)
	})
}
