package quorum_test

import (
	"context"
	"errors"
	"io"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/fencelock/fencelock/quorum"
	"github.com/fencelock/fencelock/rlock"
)

// Two of five masters stop, and the lock goes on; with a third it says so within its bounds; when that is back, and old
// enough, it goes on.
func TestReal_MastersStop(t *testing.T) {
	s := masters(t, 5)
	u := s.user(lease(rlock.WithPatience(time.Second), rlock.WithUnlockTimeout(time.Second)), patient())
	l := u.lock("a")
	held, token, err := l.LockAndGetToken(t.Context())
	locktest.NoError(t, err)
	s.servers[0].Kill()
	s.servers[3].Kill()
	time.Sleep(2 * realLease)
	locktest.NoError(t, l.Check(held)) // renewed by three
	inner, next, err := l.LockAndGetToken(held)
	locktest.NoError(t, err)
	if next <= token {
		t.Errorf("Inv2: token %d after %d", next, token)
	}
	locktest.NoError(t, l.Unlock(inner))
	locktest.NoError(t, l.Unlock(held))
	locktest.NoError(t, l.Do(t.Context(), func(ctx context.Context, token int64) error {
		if token <= next {
			t.Errorf("Inv2: token %d after %d", token, next)
		}
		return ctx.Err()
	}))

	held, _, err = l.LockAndGetToken(t.Context())
	locktest.NoError(t, err)
	s.servers[4].Kill()
	began := time.Now()
	select {
	case <-held.Done():
	case <-time.After(bound):
		t.Fatal("the hold's context lives on without a majority")
	}
	within(t, began, realLease, "the end of the hold's context")
	locktest.IsError(t, context.Cause(held), rlock.ErrLost)
	locktest.IsError(t, l.Unlock(held), rlock.ErrLost)

	try := func() {
		t.Helper()
		redistest.Eventually(t, bound, func() bool { // the two that are left may have what is over still, and say so
			began = time.Now()
			_, _, err = l.TryLockAndGetToken(t.Context(), 0, 0)
			return !errors.Is(err, rlock.ErrNotAcquired)
		}, "what is over is released")
		locktest.IsError(t, err, quorum.ErrNoMajority)
	}
	try()
	locktest.ErrorSays(t, err, s.servers[0].Addr(), s.servers[3].Addr(), s.servers[4].Addr())
	within(t, began, 1500*time.Millisecond, "a call that does not wait")
	began = time.Now()
	_, _, err = l.LockAndGetToken(t.Context())
	locktest.IsError(t, err, quorum.ErrNoMajority)
	within(t, began, 2*time.Second, "a call with a patience of a second")

	s.servers[4].Restart()
	try()
	s.ripen(4)
	held, _, err = l.TryLockAndGetToken(t.Context(), 5*time.Second, 0)
	locktest.NoError(t, err)
	locktest.NoError(t, l.Unlock(held))
	s.servers[0].Restart()
	s.servers[3].Restart()
	s.free("a")
}

// A node that hangs costs no more than its timeout, and only the first calls.
func TestReal_FrozenNode(t *testing.T) {
	s := masters(t, 5)
	u := s.user(lease(), patient()) // a pair that waited for the node would take two or three of its timeouts
	l := u.lock("a")
	held, _, err := l.LockAndGetToken(t.Context())
	locktest.NoError(t, err)
	s.servers[1].Freeze()
	began := time.Now()
	const pairs = 20
	locktest.NoError(t, l.Unlock(held))
	for range pairs {
		locktest.NoError(t, l.Do(t.Context(), func(ctx context.Context, _ int64) error { return ctx.Err() }, rlock.Wait(5*time.Second)))
	}
	within(t, began, pairs*200*time.Millisecond, "locking twenty times beside a frozen node")

	began = time.Now()
	locked, err := l.IsLocked(t.Context())
	locktest.NoError(t, err)
	locktest.Equal(t, "locked", locked, false)
	within(t, began, 500*time.Millisecond, "a question beside a frozen node")
	s.servers[1].Thaw()
	s.free("a")
	locktest.NoError(t, u.Shutdown(t.Context()))
	s.clean("a")
}

// P8: a renewal goes on through the connections to a node that had ended while they were idle, as many as there are.
func TestP8_EndedConnectionsToNodesAreLeft(t *testing.T) {
	const idle = 30 // more than there are attempts to renew a lease, one after the other
	s := masters(t, 3)
	var nodes []*redis.Client
	s.connect = func(i int) *redis.Client {
		rdb := redistest.Client(t, s.servers[i].Addr(), func(o *redis.Options) { o.PoolSize, o.Dialer = 2*idle, redistest.BlindDialer })
		nodes = append(nodes, rdb)
		return rdb
	}
	u := s.user(lease(), patient())
	held, _, err := u.lock("a").LockAndGetToken(t.Context())
	locktest.NoError(t, err)
	for i, rdb := range nodes {
		redistest.LeaveIdle(t, rdb, idle)
		locktest.NoError(t, s.direct[i].Do(t.Context(), "client", "kill", "type", "normal", "skipme", "yes").Err())
	}
	left := realLease
	redistest.Eventually(t, bound, func() bool {
		locktest.NoError(t, held.Err())
		before := left
		left = s.direct[0].PTTL(t.Context(), "a").Val()
		return left > before
	}, "the lock is renewed")
	runtime.KeepAlive(held)
}

// Replies that are lost: of votes, of proposals, of releases, on two nodes at a time. Each acquire counts once, and
// nothing is left.
func TestReal_LostReplies(t *testing.T) {
	s := masters(t, 5)
	u := s.user(lease(), patient())
	l := u.lock("a")
	var last int64
	for _, op := range []string{"", "vote", "raise", "withdraw", "recount", "extend"} {
		pairs := 0 // with a lost reply
		for pair := range 5 {
			var lostAny atomic.Bool
			u.on(func(_ int, is string, _ []any, next func() error) error {
				if op == "" || !strings.Contains(is, op) {
					return next()
				}
				if err := next(); err != nil {
					return err
				}
				lostAny.Store(true)
				return io.EOF
			}, pair, (pair+1)%5)
			held, token, err := l.LockAndGetToken(t.Context())
			locktest.NoError(t, err)
			inner, next, err := l.LockAndGetToken(held)
			locktest.NoError(t, err)
			if token <= last || next <= token {
				t.Fatalf("Inv2: tokens %d, %d, %d", last, token, next)
			}
			last = next
			if op == "extend" {
				redistest.Eventually(t, bound, lostAny.Load, "a renewal is lost")
			}
			count, err := l.HoldCount(inner)
			locktest.NoError(t, err)
			locktest.Equal(t, "hold count", count, 2)
			locktest.NoError(t, l.Unlock(inner))
			locktest.NoError(t, l.Unlock(held))
			if lostAny.Load() {
				pairs++
			}
			u.up()
		}
		if op != "" && op != "withdraw" && pairs == 0 { // two nodes that vote late are not asked: the others are a majority
			t.Errorf("no %s was lost", op)
		}
	}
	s.free("a")
	locktest.NoError(t, u.Shutdown(t.Context()))
	s.clean("a")
}

// The counterexample of the delayed restart on real processes: see TestDelayedRestart.
func TestReal_DelayedRestart(t *testing.T) {
	t.Run("naive", func(t *testing.T) {
		s := masters(t, 5)
		a, b := counterexample(s)
		quorum.Naive(b.Client)
		l := b.lock("l")
		for range 5 { // on a busy machine A's hold may be over before B has asked, or B's attempt be late
			held, _, err := a.lock("l").LockLeaseAndGetToken(t.Context(), realLease)
			if err != nil {
				s.ripen(2)
				continue
			}
			s.servers[2].Restart()
			got, _, err := l.TryLockAndGetToken(t.Context(), 0, 0)
			both := err == nil && held.Err() == nil && got.Err() == nil
			_ = a.lock("l").Unlock(held)
			if err == nil {
				_ = l.Unlock(got)
			}
			if both {
				return
			}
			s.ripen(2)
		}
		t.Error("the counterexample shows nothing: there were never two holders")
	})
	t.Run("ours", func(t *testing.T) {
		s := masters(t, 5)
		a, b := counterexample(s)
		held, _, err := a.lock("l").LockLeaseAndGetToken(t.Context(), realLease)
		locktest.NoError(t, err)
		s.servers[2].Restart()
		refused := 0
		for l := b.lock("l"); ; refused++ {
			got, _, err := l.LockAndGetToken(t.Context())
			if err == nil {
				locktest.IsError(t, held.Err(), rlock.ErrLost)
				locktest.NoError(t, l.Unlock(got))
				break
			}
			locktest.IsError(t, err, quorum.ErrRestarted)
			locktest.ErrorSays(t, err, "1 of 5 nodes started less than 3s ago and may have forgotten holds", s.servers[2].Addr())
		}
		if refused == 0 {
			t.Error("B was never refused")
		}
	})
}

// counterexample is A, which can reach the first three of five nodes, and B, which can reach the last three.
func counterexample(s *site) (a, b *user) {
	a = s.user(lease(), patient())
	a.down(3, 4)
	b = s.user(lease(rlock.WithPatience(time.Second)), patient())
	b.down(0, 1)
	return a, b
}

// A node whose every command was on disk before it was answered counts at once when it is back; but not one that comes
// back with an empty disk.
func TestReal_NodesThatKeepEverything(t *testing.T) {
	s := masters(t, 3, "--appendonly", "yes", "--appendfsync", "always")
	u := s.user(lease(rlock.WithPatience(2*time.Second)), patient())
	l := u.lock("a")
	locktest.NoError(t, l.Do(t.Context(), func(context.Context, int64) error { return nil }))
	for i := range 3 {
		redistest.Eventually(t, bound, func() bool {
			_ = l.Do(t.Context(), func(context.Context, int64) error { return nil })
			return s.direct[i].Exists(context.Background(), "fencelock:quorum").Val() == 1
		}, "node %d is marked as one that keeps everything", i)
	}
	held, _, err := l.LockLeaseAndGetToken(t.Context(), realLease)
	locktest.NoError(t, err)
	s.servers[0].Restart()
	s.servers[1].Kill()
	other := s.user(lease(rlock.WithPatience(2*time.Second)), patient()).lock("a")
	try := func(wait time.Duration) (held context.Context, err error) {
		for range 5 { // of two nodes, each of which writes to a busy disk, one may not answer in time
			held, _, err = other.TryLockAndGetToken(t.Context(), wait, 0)
			silent := errors.Is(err, context.DeadlineExceeded) || errors.Is(err, quorum.ErrNoMajority)
			if !silent || errors.Is(err, quorum.ErrRestarted) {
				break
			}
		}
		return held, err
	}
	got, err := try(0)
	if held.Err() == nil {
		locktest.IsError(t, err, rlock.ErrNotAcquired)
	} else if err == nil {
		locktest.NoError(t, other.Unlock(got))
	}
	_ = l.Unlock(held)
	quick := false
	for range 5 { // on a busy machine it may be old before it has answered
		s.servers[0].Restart()
		held, _, err = other.TryLockAndGetToken(t.Context(), 5*time.Second, 0)
		locktest.NoError(t, err)
		young := uptimeLine.FindStringSubmatch(s.direct[0].Info(t.Context(), "server").Val())
		locktest.NoError(t, other.Unlock(held))
		if up, err := strconv.Atoi(young[1]); err == nil && time.Duration(up)*time.Second < realDelay {
			quick = true
			break
		}
	}
	if !quick {
		t.Error("a node that kept everything did not count before it was old")
	}

	locktest.NoError(t, s.direct[0].FlushAll(context.Background()).Err()) // a new disk
	for range 5 {                                                         // on a busy machine the vote of an attempt from before may be there still
		s.servers[0].Restart()
		_, _, err = other.TryLockAndGetToken(t.Context(), 0, 0)
		if err == nil || errors.Is(err, quorum.ErrRestarted) {
			break
		}
	}
	locktest.IsError(t, err, quorum.ErrRestarted)
	s.ripen(0)
	held, err = try(5 * time.Second)
	locktest.NoError(t, err)
	locktest.NoError(t, other.Unlock(held))
}

// A password that is wrong on a minority is for the log; on a majority it is what the call returns, at once, with the
// nodes' names and without the password.
func TestReal_WrongPasswords(t *testing.T) {
	s := masters(t, 3)
	for i := range 3 {
		locktest.NoError(t, s.direct[i].ConfigSet(context.Background(), "requirepass", "secret").Err())
	}
	connect := func(wrong ...int) *rlock.Client {
		var nodes []redis.UniversalClient
		for i := range 3 {
			nodes = append(nodes, redistest.Client(t, s.servers[i].Addr(), func(o *redis.Options) {
				o.Password = "secret"
				for _, w := range wrong {
					if w == i {
						o.Password = "hunter2"
					}
				}
			}))
		}
		c, err := quorum.New(nodes, lease(), patient())
		locktest.NoError(t, err)
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	locktest.NoError(t, fenced.NewLock(connect(1), "a").Do(t.Context(), func(context.Context, int64) error { return nil }))
	began := time.Now()
	_, _, err := fenced.NewLock(connect(1, 2), "a").LockAndGetToken(t.Context())
	locktest.IsError(t, err, quorum.ErrNoMajority)
	locktest.ErrorSays(t, err, s.servers[1].Addr(), s.servers[2].Addr(), "WRONGPASS")
	if strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "secret") {
		t.Errorf("the error tells the password: %v", err)
	}
	within(t, began, 3*time.Second, "a call that can only fail")
}

// A waiter is woken by what the nodes say, long before it would look by itself; also when two of them say nothing.
func TestReal_WaitersAreWoken(t *testing.T) {
	s := masters(t, 5)
	l := s.user(lease(rlock.WithPollInterval(time.Minute)), patient()).lock("a")
	held, _, err := l.LockAndGetToken(t.Context())
	locktest.NoError(t, err)
	w := s.user(lease(rlock.WithPollInterval(time.Minute)), patient())
	w.down(0, 1)
	other := w.lock("a")
	got := locktest.StartFenced(func() (context.Context, int64, error) { return other.LockAndGetToken(t.Context()) })
	redistest.Eventually(t, bound, func() bool {
		for _, node := range s.direct[2:] {
			if len(node.PubSubChannels(context.Background(), "redisson_lock__channel:{a}*").Val()) > 0 {
				return true
			}
		}
		return false
	}, "the waiter listens on a node")
	time.Sleep(50 * time.Millisecond)
	began := time.Now()
	locktest.NoError(t, l.Unlock(held))
	select {
	case r := <-got:
		locktest.NoError(t, r.Err)
		within(t, began, 500*time.Millisecond, "waking a waiter")
		locktest.NoError(t, other.Unlock(r.Ctx))
	case <-time.After(bound):
		t.Fatal("the waiter sleeps on")
	}
}

// No call outlives its context, whatever the nodes do (Inv6).
func TestReal_Inv6_ContextsEndCalls(t *testing.T) {
	s := masters(t, 3)
	l := s.user(lease(rlock.WithUnlockTimeout(500*time.Millisecond)), patient()).lock("a")
	held, _, err := l.LockAndGetToken(t.Context())
	locktest.NoError(t, err)
	for i, rdb := range s.direct {
		redistest.Eventually(t, bound, func() bool { return rdb.Exists(t.Context(), "a").Val() == 1 }, "node %d has the hold", i) // a majority has it at once
	}
	s.servers[0].Freeze()
	s.servers[2].Freeze()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	began := time.Now()
	if _, _, err := l.LockAndGetToken(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Lock: %v", err)
	}
	within(t, began, 100*time.Millisecond, "Lock with a context that ends")
	began = time.Now()
	if err := l.Unlock(held); err == nil {
		t.Error("Unlock says that it is done, by one node of three")
	}
	within(t, began, time.Second, "Unlock without a majority")
	s.servers[0].Thaw()
	s.servers[2].Thaw()
	s.free("a")
}
