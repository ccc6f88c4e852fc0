package quorum_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/quorums"
	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/quorum"
	"github.com/fencelock/fencelock/rlock"
	"github.com/fencelock/fencelock/watchdog"
)

// The hold's deadline counts from before the votes, however long these, and a round for the token after them, take (P6), and leaves Redlock's
// drift: what is left of the lease on the nodes is a percent and 2 ms.
func TestP6_DeadlineCountsFromBeforeTheVotes(t *testing.T) {
	for idle, rounds := range map[time.Duration]time.Duration{0: 1, 2 * time.Minute: 2} { // a client that is idle forgets the nodes' clocks
		deadlineCountsFromBeforeTheVotes(t, idle, rounds)
	}
}

func deadlineCountsFromBeforeTheVotes(t *testing.T, idle, rounds time.Duration) {
	virtual(t, 3, func(t *testing.T, s *site) {
		u := s.user(quorum.WithNodeTimeout(time.Second))
		u.on(func(_ int, _ string, _ []any, next func() error) error {
			err := next()
			if !redis.HasErrorPrefix(err, "NOSCRIPT") {
				time.Sleep(400 * time.Millisecond)
			}
			return err
		}, 0, 1, 2)
		const lease = 10 * time.Second
		l := u.lock("l")
		_ = l.Do(t.Context(), func(context.Context, int64) error { // the nodes have a counter
			locktest.Sleep(time.Second) // until the last one has the hold too
			return nil
		})
		locktest.Sleep(idle)
		began := time.Now()
		held, _, err := l.LockLeaseAndGetToken(t.Context(), lease)
		locktest.NoError(t, err)
		if took := time.Since(began); took < rounds*400*time.Millisecond || took >= (rounds+1)*400*time.Millisecond {
			t.Fatalf("the acquire took %v", took)
		}
		<-held.Done()
		took := time.Since(began)
		if want := lease - lease/100 - time.Millisecond; took > want || took < want-200*time.Millisecond {
			t.Errorf("the hold was trusted for %v, want %v", took, want)
		}
		_ = l.Unlock(held)
	})
}

// Redlock's drift: the nodes keep the lock for a percent of the lease and 2 ms longer than the hold is trusted, of which
// the watchdog's margin is all but a millisecond.
func TestP6_Drift(t *testing.T) {
	virtual(t, 3, func(t *testing.T, s *site) {
		const lease = 10 * time.Second
		l := s.user().lock("l")
		held, _, err := l.LockLeaseAndGetToken(t.Context(), lease)
		locktest.NoError(t, err)
		synctest.Wait() // until the last node has answered too
		margin := watchdog.Now().Time().Add(lease).Sub(watchdog.DeadlineOf(watchdog.Now(), lease).Time())
		if drift := s.minis[0].TTL("l") - lease + margin; drift != lease/100+2*time.Millisecond {
			t.Errorf("the nodes keep the lock for %v longer than the hold is trusted", drift)
		}
		locktest.NoError(t, l.Unlock(held))
	})
}

// An attempt that took a part of the nodes is released, and the next one has another field, on every node (P1): a late
// copy of the release meets nothing.
func TestP1_EachAttemptHasItsOwnField(t *testing.T) {
	virtual(t, 5, func(t *testing.T, s *site) {
		u := s.user()
		order := quorum.Order(u.Client, "l")
		free := order[4]
		for i, n := range order[1:4] { // held by somebody who has no majority, for a while
			m := s.minis[n]
			m.HSet("l", []string{"6b1f0d1e-0000-4000-8000-000000000001:1", "6b1f0d1e-0000-4000-8000-000000000002:1"}[i/2], "1")
			m.SetTTL("l", 500*time.Millisecond)
		}
		var mu sync.Mutex
		var fields []string
		var late []func() error
		u.on(func(node int, op string, args []any, next func() error) error {
			mu.Lock()
			defer mu.Unlock()
			switch {
			case op == "vote" && node == free && !slices.Contains(fields, fieldOf(args)):
				fields = append(fields, fieldOf(args))
			case op == "withdraw" && node == free:
				late = append(late, next)
			}
			return next()
		}, free)
		l := u.lock("l")
		held, _, err := l.LockAndGetToken(t.Context())
		locktest.NoError(t, err)
		mu.Lock()
		if n := len(fields); n < 2 || n > 100 { // in half a second
			t.Errorf("%d attempts, with the fields %v", n, fields)
		}
		copies := slices.Clone(late)
		mu.Unlock()
		for _, again := range copies {
			_ = again()
		}
		locktest.Sleep(11 * time.Second) // the last vote, where it had not left when the others were a majority, goes there with the renewal
		locktest.Equal(t, "the field on the node that was free", s.fields("l")[free], fields[len(fields)-1])
		locktest.NoError(t, held.Err())
		locktest.NoError(t, l.Unlock(held))
	})
}

// A vote that got no answer on a node is released there until it cannot matter (P3): also one that arrives after all.
func TestP3_LateVote(t *testing.T) {
	virtual(t, 5, func(t *testing.T, s *site) {
		u := s.user()
		l := u.lock("l")
		teach(t, l)
		var late atomic.Pointer[func() error]
		u.on(func(_ int, op string, _ []any, next func() error) error {
			if op == "vote" && late.CompareAndSwap(nil, &next) {
				time.Sleep(3 * time.Second)
				return context.DeadlineExceeded // a read that gives up
			}
			return next()
		}, 4)
		held, _, err := l.LockAndGetToken(t.Context())
		locktest.NoError(t, err)
		synctest.Wait() // the vote is under way to the frozen node: an Unlock before would keep it from being sent
		locktest.NoError(t, l.Unlock(held))
		locktest.Sleep(5 * time.Second)
		locktest.NoError(t, (*late.Load())()) // the frozen node goes on
		locktest.Equal(t, "nodes that have the lock", s.has("l"), 1)
		locktest.Sleep(25 * time.Second) // it does not run out before
		locktest.Equal(t, "nodes that have the lock", s.has("l"), 0)
	})
}

// A repair that arrives after the Unlock leaves nothing behind either (Inv10).
func TestInv10_LateRepair(t *testing.T) {
	virtual(t, 5, func(t *testing.T, s *site) {
		u := s.user()
		l := u.lock("l")
		held, _, err := l.LockAndGetToken(t.Context())
		locktest.NoError(t, err)
		locktest.Sleep(20 * time.Millisecond) // every node has the hold
		s.restart(4)
		release := make(chan struct{})
		var late atomic.Bool
		u.on(func(_ int, op string, _ []any, next func() error) error {
			if op == "vote" && late.CompareAndSwap(false, true) { // a second one would keep the release from overtaking
				<-release
			}
			return next()
		}, 4)
		locktest.Sleep(11 * time.Second)
		if !late.Load() {
			t.Error("no repair is under way")
		}
		locktest.NoError(t, l.Unlock(held))
		synctest.Wait() // the release came to every node
		close(release)
		locktest.Sleep(2 * time.Second)
		locktest.Equal(t, "nodes that have the lock", s.has("l"), 0)
		locktest.Sleep(time.Minute)
		locktest.Equal(t, "records", quorum.Records(u.Client), 0)
	})
}

// A lock that was forced open stays open: no renewal brings it back, although two nodes never had it.
func TestForceUnlockIsNotUndone(t *testing.T) {
	virtual(t, 5, func(t *testing.T, s *site) {
		u := s.user()
		u.down(3, 4)
		held, _, err := u.lock("l").LockAndGetToken(t.Context())
		locktest.NoError(t, err)
		u.up()
		freed, err := s.user().lock("l").ForceUnlock(t.Context())
		locktest.NoError(t, err)
		locktest.Equal(t, "freed", freed, true)
		locktest.Sleep(11 * time.Second)
		locktest.IsError(t, context.Cause(held), rlock.ErrLost)
		locktest.Sleep(time.Minute)
		locktest.Equal(t, "nodes that have the lock", s.has("l"), 0)
	})
}

// A repair does not put the lock where somebody else's field is.
func TestRepairLeavesOthersAlone(t *testing.T) {
	virtual(t, 5, func(t *testing.T, s *site) {
		u := s.user()
		u.down(4)
		l := u.lock("l")
		held, _, err := l.LockAndGetToken(t.Context())
		locktest.NoError(t, err)
		const other = "6b1f0d1e-0000-4000-8000-000000000001:1"
		s.minis[4].HSet("l", other, "1")
		s.minis[4].SetTTL("l", time.Hour)
		u.up()
		locktest.Sleep(30 * time.Second)
		locktest.NoError(t, held.Err())
		locktest.Equal(t, "the other's field", s.fields("l")[4], other)
		locktest.NoError(t, l.Unlock(held))
		locktest.Sleep(time.Minute)
		locktest.Equal(t, "the other's field", s.fields("l")[4], other)
	})
}

// ahead is a counter that no clock has reached.
const ahead int64 = 5e15

// A token is one that a majority accepted, and larger than all that any majority has accepted: a node that is ahead of the
// others, because a proposal reached it alone, is outbid.
func TestTokensOutbid(t *testing.T) {
	virtual(t, 3, func(t *testing.T, s *site) {
		u := s.user()
		l := u.lock("l")
		teach(t, u.lock("other"))
		locktest.NoError(t, s.minis[2].Set("redisson_lock_token:{l}", fmt.Sprint(ahead)))
		u.on(func(_ int, op string, _ []any, next func() error) error {
			if op == "vote" {
				time.Sleep(10 * time.Millisecond) // its vote is not waited for
			}
			return next()
		}, 2)
		held, first, err := l.LockAndGetToken(t.Context())
		locktest.NoError(t, err)
		locktest.NoError(t, l.Unlock(held))
		u.up()
		u.down(0)
		held, second, err := l.LockAndGetToken(t.Context())
		locktest.NoError(t, err)
		if first >= ahead || second <= ahead || second > ahead+2 { // and 2 where the late vote has told of the counter: the node takes the next number with its vote then
			t.Errorf("tokens %d, %d", first, second)
		}
		locktest.NoError(t, l.Unlock(held))
		u.up()
		s.minis[0].Del("redisson_lock_token:{l}")
		u.down(1)
		held, third, err := l.LockAndGetToken(t.Context())
		locktest.NoError(t, err)
		if third <= second {
			t.Errorf("Inv2: token %d after %d", third, second)
		}
		locktest.NoError(t, l.Unlock(held))
	})
}

// A proposal that a majority refuses is made again with a larger number, though another node has accepted it before.
func TestProposalsAreRaised(t *testing.T) {
	virtual(t, 3, func(t *testing.T, s *site) {
		u := s.user()
		l := u.lock("l")
		u.on(func(node int, op string, _ []any, next func() error) error {
			if op == "raise" { // between the vote and the proposal
				if n, _ := s.minis[node].Get("redisson_lock_token:{l}"); n == "" {
					_ = s.minis[node].Set("redisson_lock_token:{l}", fmt.Sprint(ahead))
				}
				time.Sleep(10 * time.Millisecond) // node 2 answers first
			}
			return next()
		}, 0, 1)
		held, token, err := l.LockAndGetToken(t.Context())
		locktest.NoError(t, err)
		locktest.Equal(t, "token", token, ahead+1)
		locktest.NoError(t, l.Unlock(held))
	})
}

// Waiters are woken by the message of any node, and not by what a failed attempt releases.
func TestWaitersAreWoken(t *testing.T) {
	virtual(t, 5, func(t *testing.T, s *site) {
		long := rlock.WithPollInterval(time.Minute)
		l := s.user(long).lock("l")
		held, _, err := l.LockAndGetToken(t.Context())
		locktest.NoError(t, err)
		var waits []<-chan locktest.Result
		var votes atomic.Int64
		for i := range 3 {
			w := s.user(long)
			if i == 0 {
				w.down(0, 1) // hears three nodes
			}
			w.on(func(_ int, op string, _ []any, next func() error) error {
				if op == "vote" {
					votes.Add(1)
				}
				return next()
			}, 2)
			other := w.lock("l")
			waits = append(waits, locktest.StartFenced(func() (context.Context, int64, error) {
				ctx, token, err := other.LockAndGetToken(t.Context())
				if err == nil {
					err = other.Unlock(ctx)
				}
				return ctx, token, err
			}))
		}
		locktest.Sleep(20 * time.Second)
		if n := votes.Load(); n > 30 { // 11 to 13; attempts that wake others would make hundreds
			t.Errorf("waiters asked %d times", n)
		}
		began := time.Now()
		locktest.NoError(t, l.Unlock(held))
		for _, w := range waits {
			locktest.NoError(t, (<-w).Err)
		}
		if took := time.Since(began); took > 500*time.Millisecond {
			t.Errorf("three waiters took %v", took)
		}
	})
}

// A hold whose nodes do not answer any more ends in time, and Unlock says so.
func TestInv3_HoldEndsWithItsMajority(t *testing.T) {
	virtual(t, 5, func(t *testing.T, s *site) {
		u := s.user(rlock.WithLease(3*time.Second), rlock.WithUnlockTimeout(time.Second))
		l := u.lock("l")
		held, _, err := l.LockAndGetToken(t.Context())
		locktest.NoError(t, err)
		locktest.Sleep(10 * time.Second)
		locktest.NoError(t, held.Err())
		u.down(0, 1, 2)
		began := time.Now()
		<-held.Done()
		if took := time.Since(began); took > 3*time.Second {
			t.Errorf("the hold was trusted for %v", took)
		}
		locktest.IsError(t, l.Unlock(held), rlock.ErrLost)
	})
}

// Close and Shutdown do what they do with one server; nothing is left.
func TestCloseAndShutdown(t *testing.T) {
	virtual(t, 5, func(t *testing.T, s *site) {
		u := s.user()
		l := u.lock("l")
		held, _, err := l.LockAndGetToken(t.Context())
		locktest.NoError(t, err)
		go func() {
			time.Sleep(time.Second)
			if err := l.Unlock(held); err != nil {
				t.Error(err)
			}
		}()
		locktest.NoError(t, u.Shutdown(t.Context()))
		locktest.Equal(t, "nodes that have the lock", s.has("l"), 0)
		_, _, err = l.LockAndGetToken(t.Context())
		locktest.IsError(t, err, rlock.ErrClosed)

		u = s.user()
		l = u.lock("l")
		held, _, err = l.LockAndGetToken(t.Context())
		locktest.NoError(t, err)
		synctest.Wait() // until the last vote has come: Close drops what is to be sent again
		locktest.NoError(t, u.Close())
		locktest.IsError(t, held.Err(), rlock.ErrClosed)
		locktest.NoError(t, l.Unlock(held))
		locktest.Sleep(time.Second)
		locktest.Equal(t, "nodes that have the lock", s.has("l"), 0)
		for i, m := range s.minis {
			for _, key := range m.Keys() {
				if key != "redisson_lock_token:{l}" && key != quorums.MembersKey {
					t.Errorf("node %d has the key %q", i, key)
				}
			}
		}
	})
}
