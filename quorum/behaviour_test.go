package quorum_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/quorum"
	"github.com/fencelock/fencelock/rlock"
)

// The lock's methods on one node and more, also with as many of them down as it bears.
func TestLockOnSomeNodes(t *testing.T) {
	for n := range 5 {
		n++
		for down := range (n-1)/2 + 1 {
			t.Run(fmt.Sprintf("%d nodes, %d down", n, down), func(t *testing.T) {
				virtual(t, n, func(t *testing.T, s *site) {
					u := s.user()
					for i := range down {
						u.down(i)
					}
					methods(t, u.lock("a"))
					locktest.Sleep(time.Minute) // what is sent again in the background is over
					locktest.Equal(t, "nodes that have the lock", s.has("a"), 0)
				})
			})
		}
	}
}

func methods(t *testing.T, l *fenced.Lock) {
	ctx := t.Context()
	var last int64
	next := func(token int64) {
		t.Helper()
		if token <= last {
			t.Fatalf("Inv2: token %d after %d", token, last)
		}
		last = token
	}
	held, token, err := l.LockAndGetToken(ctx)
	locktest.NoError(t, err)
	next(token)
	inner, token, err := l.TryLockAndGetToken(held, 0, 5*time.Second)
	locktest.NoError(t, err)
	next(token)
	count, err := l.HoldCount(inner)
	locktest.NoError(t, err)
	locktest.Equal(t, "hold count", count, 2)
	_, _, err = l.TryLockAndGetToken(ctx, 0, 0)
	locktest.IsError(t, err, rlock.ErrNotAcquired)
	_, _, err = l.TryLockAndGetToken(ctx, 100*time.Millisecond, 0)
	locktest.IsError(t, err, rlock.ErrNotAcquired)
	ttl, err := l.TTL(ctx)
	locktest.NoError(t, err)
	if ttl < 29*time.Second || ttl > 30*time.Second+time.Millisecond {
		t.Fatalf("TTL %v", ttl)
	}
	locktest.NoError(t, l.Unlock(inner))
	count, err = l.HoldCount(held)
	locktest.NoError(t, err)
	locktest.Equal(t, "hold count", count, 1)
	locktest.Sleep(2 * time.Minute) // the watchdog keeps it
	locktest.NoError(t, l.Check(held))
	locked, err := l.IsLocked(ctx)
	locktest.NoError(t, err)
	locktest.Equal(t, "locked", locked, true)
	mine, err := l.IsHeld(held)
	locktest.NoError(t, err)
	locktest.Equal(t, "held", mine, true)
	current, err := l.Token(held)
	locktest.NoError(t, err)
	locktest.Equal(t, "token", current, last)
	locktest.NoError(t, l.Unlock(held))
	locktest.IsError(t, l.Unlock(held), rlock.ErrNotHeld)
	locked, err = l.IsLocked(ctx)
	locktest.NoError(t, err)
	locktest.Equal(t, "locked", locked, false)
	ttl, err = l.TTL(ctx)
	locktest.NoError(t, err)
	locktest.Equal(t, "TTL", ttl, -2)

	held, token, err = l.LockLeaseAndGetToken(ctx, time.Second)
	locktest.NoError(t, err)
	next(token)
	locktest.Sleep(1100 * time.Millisecond)
	locktest.IsError(t, context.Cause(held), rlock.ErrLost)
	locktest.IsError(t, l.Unlock(held), rlock.ErrLost)

	locktest.NoError(t, l.Do(ctx, func(ctx context.Context, token int64) error { next(token); return ctx.Err() }, rlock.Wait(time.Second)))
	held, _, err = l.LockAndGetToken(ctx)
	locktest.NoError(t, err)
	freed, err := l.ForceUnlock(ctx)
	locktest.NoError(t, err)
	locktest.Equal(t, "freed", freed, true)
	locktest.IsError(t, context.Cause(held), rlock.ErrLost)
	locktest.IsError(t, l.Unlock(held), rlock.ErrLost)
	freed, err = l.ForceUnlock(ctx)
	locktest.NoError(t, err)
	locktest.Equal(t, "freed", freed, false)
	locktest.NoError(t, l.Do(ctx, func(_ context.Context, token int64) error { next(token); return nil }))
}

// One more node down than that: an error in time that says which, and nothing is left.
func TestInv12_NoMajority(t *testing.T) {
	virtual(t, 5, func(t *testing.T, s *site) {
		u := s.user(rlock.WithPatience(2 * time.Second))
		u.down(0, 2, 4)
		l := u.lock("a")
		began := time.Now()
		_, _, err := l.LockAndGetToken(t.Context())
		locktest.IsError(t, err, quorum.ErrNoMajority)
		var e *quorum.MajorityError
		if !errors.As(err, &e) || e.Need != 3 || e.Nodes != 5 || len(e.Failed) != 3 {
			t.Fatalf("%v: %+v", err, e)
		}
		if took := time.Since(began); took < 2*time.Second || took > 3*time.Second {
			t.Errorf("it took %v", took)
		}
		_, _, err = l.TryLockAndGetToken(t.Context(), 300*time.Millisecond, 0)
		locktest.IsError(t, err, quorum.ErrNoMajority)
		_, err = l.IsLocked(t.Context())
		locktest.IsError(t, err, quorum.ErrNoMajority)
		locktest.Sleep(time.Minute)
		locktest.Equal(t, "nodes that have the lock", s.has("a"), 0)

		waits := locktest.StartFenced(func() (context.Context, int64, error) { return l.LockAndGetToken(t.Context()) })
		locktest.Sleep(time.Second)
		u.up()
		got := <-waits
		locktest.NoError(t, got.Err)
		locktest.NoError(t, l.Unlock(got.Ctx))
	})
}

// Six clients that want one lock all get it, in few attempts each.
func TestContendersMakeProgress(t *testing.T) {
	virtual(t, 5, func(t *testing.T, s *site) {
		const clients, rounds = 6, 15
		var votes, inside, holds atomic.Int64
		var last atomic.Int64
		done := make(chan error, clients)
		for range clients {
			u := s.user()
			u.on(func(_ int, op string, _ []any, next func() error) error {
				if op == "vote" {
					votes.Add(1)
				}
				time.Sleep(200 * time.Microsecond)
				return next()
			}, 0, 1, 2, 3, 4)
			l := u.lock("a")
			go func() {
				for range rounds {
					err := l.Do(t.Context(), func(ctx context.Context, token int64) error {
						if inside.Add(1) != 1 {
							return errors.New("Inv1: two at once")
						}
						if before := last.Swap(token); before >= token {
							return fmt.Errorf("Inv2: token %d after %d", token, before)
						}
						time.Sleep(2 * time.Millisecond)
						holds.Add(1)
						inside.Add(-1)
						return nil
					})
					if err != nil {
						done <- err
						return
					}
				}
				done <- nil
			}()
		}
		began := time.Now()
		for range clients {
			locktest.NoError(t, <-done)
		}
		took, each := time.Since(began), float64(votes.Load())/5/float64(holds.Load())
		t.Logf("%d holds in %v, %.1f attempts each", holds.Load(), took, each)
		if each > 6 {
			t.Errorf("%.1f attempts for each hold", each)
		}
		if took > 20*time.Second {
			t.Errorf("%d holds took %v", holds.Load(), took)
		}
		locktest.Sleep(time.Minute)
		locktest.Equal(t, "nodes that have the lock", s.has("a"), 0)
	})
}

// A call with a count of tries gives up after them.
func TestTries(t *testing.T) {
	virtual(t, 3, func(t *testing.T, s *site) {
		held, _, err := s.user().lock("a").LockAndGetToken(t.Context())
		locktest.NoError(t, err)
		var votes atomic.Int64
		u := s.user(quorum.WithTries(3))
		u.on(func(_ int, op string, _ []any, next func() error) error {
			if op == "vote" {
				votes.Add(1)
			}
			return next()
		}, 0, 1, 2)
		l := u.lock("a")
		_, _, err = l.TryLockAndGetToken(t.Context(), time.Hour, 0)
		locktest.IsError(t, err, rlock.ErrNotAcquired)
		locktest.NoError(t, held.Err())
		// The first try asks two of the nodes at least: what has not left when they have answered does not leave any more.
		// The others ask the node that settles between clients, and may ask all. The first node may be asked twice, as it
		// does not know the script yet.
		if n := votes.Load(); n < 2+2 || n > 3*3+3 {
			t.Errorf("%d votes", n)
		}
	})
}
