package quorum_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/quorum"
	"github.com/fencelock/fencelock/rlock"
)

// A call whose wait ends while the votes are split says so, and not that somebody holds the lock.
func TestSplitVoteHasItsOwnError(t *testing.T) {
	virtual(t, 3, func(t *testing.T, s *site) {
		u := s.user()
		rest := quorum.Order(u.Client, "l")[1:]
		for i, n := range rest { // two that have a node each, and none a majority, nor the home
			s.minis[n].HSet("l", []string{"6b1f0d1e-0000-4000-8000-000000000001:1", "6b1f0d1e-0000-4000-8000-000000000002:1"}[i], "1")
			s.minis[n].SetTTL("l", time.Hour)
		}
		l := u.lock("l")
		for _, wait := range []time.Duration{0, 3 * time.Second} {
			_, _, err := l.TryLockAndGetToken(t.Context(), wait, 0)
			locktest.IsError(t, err, quorum.ErrSplitVote)
			locktest.IsError(t, err, rlock.ErrNotAcquired)
			if strings.Contains(err.Error(), "held by") {
				t.Errorf("wait %v: %v", wait, err)
			}
		}
		for _, n := range rest {
			s.minis[n].Del("l")
		}
		other := s.user().lock("l")
		held, _, err := other.LockAndGetToken(t.Context())
		locktest.NoError(t, err)
		_, _, err = l.TryLockAndGetToken(t.Context(), time.Second, 0)
		locktest.IsError(t, err, rlock.ErrNotAcquired)
		if errors.Is(err, quorum.ErrSplitVote) {
			t.Errorf("somebody holds the lock: %v", err)
		}
		locktest.NoError(t, other.Unlock(held))
	})
}

// The votes of clients that come back at once are not split: one node settles between them, and what a lock costs does not
// grow with the clients that wait for it.
func TestManyClientsOfOneLock(t *testing.T) {
	virtual(t, 5, func(t *testing.T, s *site) {
		const clients, rounds = 100, 3
		var operations atomic.Int64
		var votes [5]atomic.Int64
		var waits sync.WaitGroup
		begin := make(chan struct{})
		for range clients {
			u := s.user()
			u.on(func(node int, op string, _ []any, next func() error) error {
				votes[node].Add(int64(strings.Count(op, "vote")))
				operations.Add(int64(len(strings.Fields(op))))
				time.Sleep(300 * time.Microsecond)
				return next()
			}, 0, 1, 2, 3, 4)
			l := u.lock("l")
			waits.Go(func() {
				<-begin
				for range rounds {
					if err := l.Do(t.Context(), func(context.Context, int64) error { return nil }, rlock.Wait(10*time.Second)); err != nil {
						t.Error(err)
					}
				}
			})
		}
		began := time.Now()
		close(begin)
		waits.Wait()
		each := float64(operations.Load()) / 5 / (clients * rounds)
		t.Logf("%d clients: %.1f operations for each lock and node, in %v", clients, each, time.Since(began))
		if each > 12 {
			t.Errorf("%.1f operations for each lock and node", each)
		}
		var sorted []float64
		for i := range votes {
			sorted = append(sorted, float64(votes[i].Load())/(clients*rounds))
		}
		slices.Sort(sorted)
		t.Logf("votes for each lock, by node: %.1f", sorted)
		if sorted[3] > 3 { // all nodes are asked by those only who have met nobody yet, and by who is ahead of all others
			t.Errorf("%.1f votes for each lock on a node that is not asked first", sorted[3])
		}
	})
}

// Who has met the owner a moment ago asks one node about it. While too few nodes count, nobody can have the lock: that is
// said then, and not that somebody holds it.
func TestNoMajorityIsSaidWhateverOneNodeHas(t *testing.T) {
	for gone := range 5 {
		virtual(t, 5, func(t *testing.T, s *site) {
			for _, m := range s.minis {
				m.HSet("l", "6b1f0d1e-0000-4000-8000-000000000001:1", "1")
				m.SetTTL("l", time.Hour)
			}
			u := s.user(rlock.WithPatience(50 * time.Millisecond))
			_, _, err := u.lock("l").TryLockAndGetToken(t.Context(), 0, 0)
			locktest.IsError(t, err, rlock.ErrNotAcquired)
			s.restart(gone)
			u.down((gone+1)%5, (gone+2)%5)
			_, _, err = u.lock("other").LockAndGetToken(t.Context()) // hears from all nodes that are left
			locktest.IsError(t, err, quorum.ErrNoMajority)
			_, _, err = u.lock("l").TryLockAndGetToken(t.Context(), 0, 0)
			locktest.IsError(t, err, quorum.ErrNoMajority)
		})
	}
}
