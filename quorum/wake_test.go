package quorum_test

import (
	"context"
	"errors"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/quorum"
	"github.com/fencelock/fencelock/rlock"
)

// P10: an attempt that had a majority of the votes and came to nothing looked to others as if it had the lock: they are
// told when it is over, and do not sleep until its lease were.
func TestP10_AttemptThatLookedLikeAHold(t *testing.T) {
	virtual(t, 3, func(t *testing.T, s *site) {
		trying := s.user(quorum.WithNodeTimeout(5 * time.Second))
		trying.on(func(_ int, op string, _ []any, next func() error) error {
			if op == "raise" {
				time.Sleep(time.Second)
				return errors.New("ERR refused")
			}
			return next()
		}, 0, 1, 2)
		failed := locktest.StartFenced(func() (context.Context, int64, error) { return trying.lock("l").TryLockAndGetToken(t.Context(), 0, 0) })
		locktest.Sleep(300 * time.Millisecond)
		locktest.Equal(t, "nodes that have the attempt's field", s.has("l"), 3)
		l := s.user(rlock.WithPollInterval(time.Minute)).lock("l")
		began := time.Now()
		held, _, err := l.LockAndGetToken(t.Context())
		locktest.NoError(t, err)
		if took := time.Since(began); took < 500*time.Millisecond || took > 2*time.Second {
			t.Errorf("the waiter got the lock after %v", took)
		}
		if r := <-failed; r.Err == nil {
			t.Error("the attempt came to something")
		}
		locktest.NoError(t, l.Unlock(held))
	})
}

// P10: somebody who has the node that is asked first, and no other, and is gone, keeps nobody out for longer than two looks.
func TestP10_FirstNodeWithoutAnOwner(t *testing.T) {
	virtual(t, 5, func(t *testing.T, s *site) {
		other, u := s.user(), s.user()
		held, _, err := other.lock("l").LockAndGetToken(t.Context())
		locktest.NoError(t, err)
		_, _, err = u.lock("l").TryLockAndGetToken(t.Context(), 0, 0) // it has met somebody
		locktest.IsError(t, err, rlock.ErrNotAcquired)
		locktest.NoError(t, other.lock("l").Unlock(held))
		locktest.Sleep(time.Second)
		first := s.minis[quorum.First(u.Client, "l")]
		first.HSet("l", "6b1f0d1e-0000-4000-8000-000000000001:1", "1")
		first.SetTTL("l", time.Hour)
		held, _, err = u.lock("l").TryLockAndGetToken(t.Context(), 5*time.Second, 0)
		locktest.NoError(t, err)
		locktest.NoError(t, u.lock("l").Unlock(held))
	})
}

// P10: an owner that has not got the home, to which waiters listen, is heard all the same, and is not asked about again and again.
func TestP10_OwnerWithoutTheFirstNode(t *testing.T) {
	virtual(t, 5, func(t *testing.T, s *site) {
		owner := s.user()
		locktest.NoError(t, owner.lock("l").Do(t.Context(), func(context.Context, int64) error { return nil }))
		locktest.Sleep(time.Second)
		owner.down(quorum.First(owner.Client, "l"))
		waiter := s.user(rlock.WithPollInterval(time.Minute))
		var votes atomic.Int32
		waiter.on(func(_ int, op string, _ []any, next func() error) error {
			votes.Add(int32(strings.Count(op, "vote")))
			return next()
		}, 0, 1, 2, 3, 4)
		l := waiter.lock("l")
		for range 4 {
			held, _, err := owner.lock("l").LockAndGetToken(t.Context())
			locktest.NoError(t, err)
			votes.Store(0)
			waitsBehind(t, l, 12*time.Second, func() error {
				if n := votes.Load(); n > 30 { // five when it comes, when it listens, and when the hold is old enough to be waited for
					t.Errorf("the waiter has asked for %d votes", n)
				}
				return owner.lock("l").Unlock(held)
			})
		}
	})
}

// P10: the same when the waiter looks again long after it met anybody, and the first node is the last one to answer.
func TestP10_OwnerWithoutTheFirstNodeForLong(t *testing.T) {
	virtual(t, 5, func(t *testing.T, s *site) {
		owner := s.user(quorum.WithMaxLease(50 * time.Minute))
		locktest.NoError(t, owner.lock("l").Do(t.Context(), func(context.Context, int64) error { return nil }))
		locktest.Sleep(time.Second)
		first := quorum.First(owner.Client, "l")
		owner.down(first)
		waiter := s.user(quorum.WithMaxLease(50*time.Minute), rlock.WithPollInterval(time.Minute))
		waiter.on(func(node int, _ string, _ []any, next func() error) error {
			time.Sleep(time.Millisecond)
			if node == first {
				time.Sleep(time.Millisecond)
			}
			return next()
		}, 0, 1, 2, 3, 4)
		l := waiter.lock("l")
		for _, long := range []time.Duration{90 * time.Second, 250 * time.Second, 10 * time.Minute} {
			held, _, err := owner.lock("l").LockLeaseAndGetToken(t.Context(), 45*time.Minute)
			locktest.NoError(t, err)
			waitsBehind(t, l, long, func() error { return owner.lock("l").Unlock(held) })
		}
	})
}

// waitsBehind waits for a lock that is released after so long, and requires that the waiter has it soon after that.
func waitsBehind(t *testing.T, l *fenced.Lock, long time.Duration, release func() error) {
	t.Helper()
	got := locktest.StartFenced(func() (context.Context, int64, error) { return l.LockAndGetToken(t.Context()) })
	locktest.Sleep(long)
	began := time.Now()
	locktest.NoError(t, release())
	r := <-got
	locktest.NoError(t, r.Err)
	if took := time.Since(began); took > 500*time.Millisecond {
		t.Errorf("the waiter got the lock %v after its release, which came after %v", took, long)
	}
	locktest.NoError(t, l.Unlock(r.Ctx))
	locktest.Sleep(5 * time.Second)
}

// P10: a waiter that does not reach the home of the lock listens on the next node, and each node that had the hold tells those who listen there.
func TestP10_WaiterWithoutTheFirstNode(t *testing.T) {
	virtual(t, 5, func(t *testing.T, s *site) {
		owner, waiter := s.user().lock("l"), s.user(rlock.WithPollInterval(time.Minute))
		l := waiter.lock("l")
		for _, one := range []*fenced.Lock{owner, l} {
			locktest.NoError(t, one.Do(t.Context(), func(context.Context, int64) error { return nil }))
		}
		locktest.Sleep(time.Second)
		waiter.down(quorum.First(waiter.Client, "l"))
		for range 2 {
			held, _, err := owner.LockAndGetToken(t.Context())
			locktest.NoError(t, err)
			waitsBehind(t, l, 12*time.Second, func() error { return owner.Unlock(held) })
		}
	})
}

// P10: a release calls the first in the line, and nobody else tries.
func TestP10_AReleaseCallsOne(t *testing.T) {
	virtual(t, 5, func(t *testing.T, s *site) {
		l := s.user().lock("l")
		held, _, err := l.LockAndGetToken(t.Context())
		locktest.NoError(t, err)
		ctx, stop := context.WithCancel(t.Context())
		var waiters sync.WaitGroup
		var mu sync.Mutex
		tried := map[int]bool{}
		for i := range 24 {
			u := s.user(rlock.WithPollInterval(time.Minute))
			u.on(func(_ int, op string, _ []any, next func() error) error {
				if strings.Contains(op, "vote") {
					mu.Lock()
					tried[i] = true
					mu.Unlock()
				}
				return next()
			}, 0, 1, 2, 3, 4)
			waiters.Go(func() {
				if mine, _, err := u.lock("l").LockAndGetToken(ctx); err == nil {
					<-ctx.Done()
					_ = u.lock("l").Unlock(mine)
				}
			})
			locktest.Sleep(10 * time.Millisecond) // so that the order is known
		}
		locktest.Sleep(2 * time.Second)
		mu.Lock()
		clear(tried)
		mu.Unlock()
		locktest.NoError(t, l.Unlock(held))
		locktest.Sleep(10 * time.Millisecond)
		mu.Lock()
		who := maps.Clone(tried)
		mu.Unlock()
		locktest.Equal(t, "the first has tried", who[0], true)
		delete(who, 0)
		delete(who, 1) // it listens to the lock's own channel too, on which one release in 25 is told (P37)
		locktest.Equal(t, "others that have tried", len(who), 0)
		stop()
		waiters.Wait()
	})
}
