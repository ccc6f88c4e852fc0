package quorum_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/quorum"
	"github.com/fencelock/fencelock/rlock"
)

// Inv12: a new client's call that does not wait is told which nodes keep it from an answer, whatever their time is, where one stands still, one has
// started a moment ago, and the third says that somebody has the lock.
func TestInv12_ATryNamesTheNodesThatDoNotCount(t *testing.T) {
	for _, timeout := range []time.Duration{50 * time.Millisecond, 110 * time.Millisecond, 250 * time.Millisecond, 2 * time.Second} {
		for i := range 6 {
			dead, young := i/2, (i/2+1+i%2)%3
			t.Run(fmt.Sprintf("%v, node %d stands still, node %d has started", timeout, dead, young), func(t *testing.T) {
				virtual(t, 3, func(t *testing.T, s *site) {
					_, _, err := s.user().lock("l").LockAndGetToken(t.Context())
					locktest.NoError(t, err)
					locktest.Sleep(100 * time.Millisecond)
					s.restart(young)
					u := s.user(quorum.WithNodeTimeout(timeout))
					u.on(func(int, string, []any, func() error) error {
						time.Sleep(5 * time.Second)
						return errRefused
					}, dead)
					began := time.Now()
					_, _, err = u.lock("l").TryLockAndGetToken(t.Context(), 0, 0)
					tookAtMost(t, began, time.Second, "the call")
					var tooFew *quorum.MajorityError
					if !errors.As(err, &tooFew) || !errors.Is(err, quorum.ErrRestarted) || errors.Is(err, context.DeadlineExceeded) {
						t.Fatalf("got %v", err)
					}
					locktest.Equal(t, "nodes that do not count", len(tooFew.Failed), 2)
				})
			})
		}
	}
}

// Inv12: after an attempt that had too few nodes the word of one node is no split vote.
func TestInv12_ATryAfterOneWithoutAMajority(t *testing.T) {
	virtual(t, 3, func(t *testing.T, s *site) {
		holder := s.user()
		_, _, err := holder.lock("l").LockAndGetToken(t.Context())
		locktest.NoError(t, err)
		locktest.Sleep(100 * time.Millisecond)
		order := quorum.Order(holder.Client, "l")
		s.restart(order[0])
		u := s.user(rlock.WithPatience(time.Millisecond)) // each call asks once
		u.on(func(int, string, []any, func() error) error {
			time.Sleep(5 * time.Second)
			return errRefused
		}, order[2])
		for range 2 { // the first one finds the home young, and the second one has another home
			_, _, err = u.lock("l").TryLockAndGetToken(t.Context(), 0, 0)
			locktest.IsError(t, err, quorum.ErrRestarted)
		}
	})
}

// Inv12: nobody is said to have a lock that nobody has asked for but this client: what the nodes have of its earlier attempts, as their answers are late, is
// its own.
func TestInv12_NobodyHasALockThatNobodyElseWants(t *testing.T) {
	taken, failed := 0, 0
	for seed := range uint64(8) {
		for _, nodes := range []int{3, 5} {
			virtual(t, nodes, func(t *testing.T, s *site) {
				var mu sync.Mutex
				rng := rand.New(rand.NewPCG(seed, 1))
				drawn := func(n int) int {
					mu.Lock()
					defer mu.Unlock()
					return rng.IntN(n)
				}
				for i := range 30 {
					u := s.user()
					slow, share := 200+200*drawn(2), 40+drawn(60)
					late := func() {
						if drawn(100) < share {
							time.Sleep(time.Duration(drawn(slow*1000)) * time.Microsecond)
						}
					}
					u.on(func(_ int, _ string, _ []any, next func() error) error {
						late()
						err := next()
						late()
						return err
					}, []int{0, 1, 2, 3, 4}[:nodes]...)
					l := u.lock(fmt.Sprint("l", i))
					held, _, err := l.TryLockAndGetToken(t.Context(), 0, 0)
					var tooFew *quorum.MajorityError
					switch {
					case err == nil:
						taken++
						_ = l.Unlock(held)
					case errors.Is(err, rlock.ErrNotAcquired) || !errors.As(err, &tooFew):
						t.Errorf("seed %d, %d nodes, client %d: %v", seed, nodes, i, err)
					default:
						failed++
					}
				}
			})
		}
	}
	if taken < 100 || failed < 10 {
		t.Errorf("%d calls got the lock, and %d did not: the nodes are not as late as they were to be", taken, failed)
	}
}

// Inv12: a call that does not wait, and whose attempt was forced open before it had its token, asks again: nobody has the lock.
func TestInv12_ATryThatIsForcedOpen(t *testing.T) {
	virtual(t, 3, func(t *testing.T, s *site) {
		u := s.user()
		var forced atomic.Bool
		u.on(func(_ int, op string, _ []any, next func() error) error {
			if op == "raise" && forced.CompareAndSwap(false, true) {
				for _, m := range s.minis {
					m.Del("l")
				}
				time.Sleep(time.Millisecond)
			}
			return next()
		}, 0, 1, 2)
		held, _, err := u.lock("l").TryLockAndGetToken(t.Context(), 0, 0)
		locktest.Equal(t, "the attempt was forced open", forced.Load(), true)
		locktest.NoError(t, err)
		locktest.NoError(t, u.lock("l").Unlock(held))
	})
}
