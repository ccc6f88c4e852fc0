package quorum_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/quorum"
	"github.com/fencelock/fencelock/rlock"
)

// P3: what the client knows of an attempt is kept from the attempt's beginning, however many others begin before it has asked.
func TestP3_AttemptThatBeginsIsKept(t *testing.T) {
	virtual(t, 3, func(t *testing.T, s *site) {
		u := s.user()
		const lease = 30 * time.Second
		begin := func(from, to int) {
			for i := from; i < to; i++ {
				quorum.Begin(u.Client, fmt.Sprintf("6b1f0d1e-0000-4000-8000-000000000001:%d", i), lease)
			}
		}
		const first = "6b1f0d1e-0000-4000-8000-000000000001:0"
		begin(0, 300)
		locktest.Equal(t, "the first is known", quorum.Knows(u.Client, first), true)
		locktest.Sleep(lease + time.Second)
		begin(300, 1000)
		locktest.Equal(t, "the first is known when its lease is over", quorum.Knows(u.Client, first), false)
	})
}

// Many goroutines that take locks at the same moment, which other clients want too, lose none.
func TestP3_ABurstLosesNothing(t *testing.T) {
	virtual(t, 3, func(t *testing.T, s *site) {
		other, u := s.user(), s.user()
		const locks = 300
		name := func(i int) string { return fmt.Sprint("l", i) }
		for i := range locks {
			held, _, err := other.lock(name(i)).LockAndGetToken(t.Context())
			locktest.NoError(t, err)
			_, _, err = u.lock(name(i)).TryLockAndGetToken(t.Context(), 0, 0) // it has met somebody
			locktest.IsError(t, err, rlock.ErrNotAcquired)
			locktest.NoError(t, other.lock(name(i)).Unlock(held))
		}
		locktest.Sleep(time.Second)
		errs := make(chan error)
		for i := range locks {
			go func() {
				errs <- u.lock(name(i)).Do(t.Context(), func(ctx context.Context, _ int64) error {
					select {
					case <-ctx.Done():
						return context.Cause(ctx)
					case <-time.After(15 * time.Second): // with a renewal
						return nil
					}
				})
			}()
		}
		for range locks {
			locktest.NoError(t, <-errs)
		}
	})
}

// P3, P40: an attempt whose release has begun asks no further node for its vote.
func TestP3_NoVoteAfterTheRelease(t *testing.T) {
	virtual(t, 3, func(t *testing.T, s *site) {
		other, u := s.user(), s.user()
		l := u.lock("l")
		held, _, err := other.lock("l").LockAndGetToken(t.Context())
		locktest.NoError(t, err)
		_, _, err = l.TryLockAndGetToken(t.Context(), 0, 0) // it has met somebody, and asks the first node first
		locktest.IsError(t, err, rlock.ErrNotAcquired)
		locktest.NoError(t, other.lock("l").Unlock(held))
		locktest.Sleep(time.Second)
		first := quorum.First(u.Client, "l")
		var late atomic.Int32
		u.on(func(node int, op string, _ []any, next func() error) error {
			switch {
			case op != "vote":
			case node == first:
				time.Sleep(4 * time.Millisecond) // it is not slow: the others are asked after it
			default:
				late.Add(1)
				time.Sleep(3 * time.Second)
			}
			return next()
		}, 0, 1, 2)
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Millisecond)
		defer cancel()
		_, _, err = l.TryLockAndGetToken(ctx, 0, 0)
		locktest.IsError(t, err, context.DeadlineExceeded)
		locktest.Sleep(5 * time.Second)
		locktest.Equal(t, "nodes that are asked behind the release", late.Load(), 0)
		locktest.Equal(t, "nodes that have the lock", s.has("l"), 0)
		locktest.Equal(t, "records", quorum.Records(u.Client), 0)
	})
}

// P3: the release of another client's hold goes to a node that is away for a lease, and not for ever.
func TestP3_ForceUnlockWithANodeAway(t *testing.T) {
	virtual(t, 5, func(t *testing.T, s *site) {
		other, u := s.user(), s.user()
		_, _, err := other.lock("l").LockLeaseAndGetToken(t.Context(), 30*time.Second)
		locktest.NoError(t, err)
		locktest.Sleep(time.Second)
		var releases atomic.Int32
		u.on(func(_ int, op string, _ []any, next func() error) error {
			releases.Add(int32(strings.Count(op, "withdraw")))
			return next()
		}, 0)
		u.down(4)
		freed, err := u.lock("l").ForceUnlock(t.Context())
		locktest.NoError(t, err)
		locktest.Equal(t, "freed", freed, true)
		locktest.Sleep(29 * time.Second)
		if releases.Load() < 3 {
			t.Errorf("it was sent %d times within the lease", releases.Load())
		}
		locktest.Sleep(time.Minute)
		releases.Store(0)
		locktest.Sleep(10 * time.Minute)
		locktest.Equal(t, "releases after the lease", releases.Load(), 0)
	})
}

// Inv12: the error of a release names the nodes that are away and were not asked, as they had not got the lock.
func TestInv12_NodesThatAReleaseDidNotAsk(t *testing.T) {
	virtual(t, 5, func(t *testing.T, s *site) {
		u := s.user()
		l := u.lock("l")
		u.down(3, 4)
		held, _, err := l.LockAndGetToken(t.Context())
		locktest.NoError(t, err)
		u.down(0, 1, 2)
		err = l.Unlock(held)
		var e *quorum.MajorityError
		if !errors.As(err, &e) || len(e.Failed) != 5 {
			t.Errorf("the release: %v", err)
		}
		u.up()
		locktest.Sleep(time.Minute)
	})
}

// One node that other clients ask too answers at once: there is no other one to wait for.
func TestOneNode(t *testing.T) {
	virtual(t, 1, func(t *testing.T, s *site) {
		other, u := s.user(), s.user()
		held, _, err := other.lock("l").LockAndGetToken(t.Context())
		locktest.NoError(t, err)
		_, _, err = u.lock("l").TryLockAndGetToken(t.Context(), 0, 0)
		locktest.IsError(t, err, rlock.ErrNotAcquired)
		locktest.NoError(t, other.lock("l").Unlock(held))
		locktest.Sleep(time.Second)
		began := time.Now()
		held, _, err = u.lock("l").TryLockAndGetToken(t.Context(), 0, 0)
		locktest.NoError(t, err)
		locktest.Equal(t, "the acquire took", time.Since(began), 0)
		locktest.NoError(t, u.lock("l").Unlock(held))
	})
}

// A round that gets more time as its timer fires has that time.
func TestTimeoutThatComesLate(t *testing.T) {
	locktest.Equal(t, "it ends the round", quorum.OverdueTimeout(), false)
}
