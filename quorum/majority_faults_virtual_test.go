package quorum_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/quorum"
	"github.com/fencelock/fencelock/rlock"
	"github.com/fencelock/fencelock/scripts"
)

// settled is known, for clients of which the next acquire of the lock needs a second round: all counters are ahead of the time.
func settled(t *testing.T, s *site, u *user) {
	t.Helper()
	known(t, u)
	for i := range s.nodes {
		locktest.NoError(t, s.minis[i].Set(scripts.KeysOf("l").Token, fmt.Sprint(time.Now().Add(20*time.Second).UnixMicro())))
	}
}

// tookAtMost fails the test where what began then has taken longer, in virtual time.
func tookAtMost(t *testing.T, began time.Time, most time.Duration, what string) {
	t.Helper()
	if took := time.Since(began); took > most {
		t.Errorf("%s took %v, want %v at most", what, took, most)
	}
}

// A client that is alone takes a new lock, whose counters are ahead of the time, in one round.
func TestInv2_OneRoundAheadOfTheTime(t *testing.T) {
	virtual(t, 5, func(t *testing.T, s *site) {
		u := s.user()
		settled(t, s, u)
		take := func() {
			locktest.NoError(t, u.lock("l").Do(t.Context(), func(context.Context, int64) error { return nil }))
		}
		take() // hears of the counters
		counted := count(u)
		for range 20 {
			take()
			locktest.Sleep(20 * time.Millisecond)
		}
		locktest.Equal(t, "nodes of second rounds", counted.nodes("raise"), 0)
	})
}

// A node that has voted, and does not accept the token, or does not say so: others are asked in its place, in the same attempt.
func TestMajorityFirst_OneNodeFailsInTheSecondRound(t *testing.T) {
	for how, fails := range map[string]func(next func() error) error{
		"refuses": func(func() error) error { return errRefused },
		"may not": func(func() error) error {
			return errors.New("NOPERM this user has no permissions to run the 'set' command")
		},
		"answer is lost":   func(next func() error) error { _ = next(); return errors.New("EOF") },
		"answers too late": func(next func() error) error { time.Sleep(time.Second); return next() },
	} {
		for place := range 3 {
			t.Run(fmt.Sprintf("%s, place %d", how, place), func(t *testing.T) {
				virtual(t, 5, func(t *testing.T, s *site) {
					u := s.user()
					settled(t, s, u)
					u.on(func(_ int, op string, _ []any, next func() error) error {
						if op == "raise" {
							return fails(next)
						}
						return next()
					}, quorum.Order(u.Client, "l")[place])
					began := time.Now()
					held, _, err := u.lock("l").TryLockAndGetToken(t.Context(), 0, 0)
					locktest.NoError(t, err)
					tookAtMost(t, began, 20*time.Millisecond, "the acquire")
					locktest.NoError(t, u.lock("l").Unlock(held))
				})
			})
		}
	}
}

// Inv2: a node that restarts between its vote and the token, with its data as they were a moment ago, does not count for the token either: it may have
// forgotten a counter.
func TestInv2_RestartBetweenVoteAndToken(t *testing.T) {
	for _, away := range [][]int{{1, 2}, {1}} { // without another node in its place, and with one
		virtual(t, 5, func(t *testing.T, s *site) {
			u := s.user()
			u.down(away...)
			var once sync.Once
			u.on(func(_ int, op string, _ []any, next func() error) error {
				if op == "raise" {
					once.Do(func() {
						s.starts[0] = run{"restarted", time.Now()}
						s.clock(0, 0)
					})
				}
				return next()
			}, 0)
			held, _, err := u.lock("l").TryLockAndGetToken(t.Context(), 0, 0)
			if len(away) > 1 {
				locktest.IsError(t, err, quorum.ErrRestarted)
				return
			}
			locktest.NoError(t, err)
			locktest.NoError(t, u.lock("l").Unlock(held))
		})
	}
}

// The home of a lock that others want stands still: the attempt goes on without it as soon as the others are asked.
func TestMajorityFirst_TheHomeStandsStill(t *testing.T) {
	virtual(t, 5, func(t *testing.T, s *site) {
		u, other := s.user(), s.user()
		known(t, u)
		known(t, other)
		held, _, err := other.lock("l").LockAndGetToken(t.Context())
		locktest.NoError(t, err)
		_, _, err = u.lock("l").TryLockAndGetToken(t.Context(), 0, 0)
		locktest.IsError(t, err, rlock.ErrNotAcquired)
		locktest.NoError(t, other.lock("l").Unlock(held))
		locktest.Sleep(100 * time.Millisecond)
		u.on(func(_ int, _ string, _ []any, next func() error) error {
			time.Sleep(10 * time.Second)
			return next()
		}, quorum.Order(u.Client, "l")[0])
		for range 4 {
			began := time.Now()
			held, _, err := u.lock("l").TryLockAndGetToken(t.Context(), 0, 0)
			locktest.NoError(t, err)
			tookAtMost(t, began, 20*time.Millisecond, "the acquire")
			_ = u.lock("l").Unlock(held)
			locktest.Sleep(time.Millisecond)
		}
	})
}

// Unlock does not wait for a node that stands still, where the others are enough.
func TestMajorityFirst_UnlockWithANodeThatStandsStill(t *testing.T) {
	for place := range 3 {
		virtual(t, 5, func(t *testing.T, s *site) {
			u := s.user()
			known(t, u)
			held, _, err := u.lock("l").LockAndGetToken(t.Context())
			locktest.NoError(t, err)
			u.on(func(_ int, _ string, _ []any, next func() error) error {
				time.Sleep(time.Second)
				return next()
			}, quorum.Order(u.Client, "l")[place])
			began := time.Now()
			locktest.NoError(t, u.lock("l").Unlock(held))
			tookAtMost(t, began, 10*time.Millisecond, "Unlock")
		})
	}
}

// A node that stood still is first again soon after it goes on: its late answers do not say how far away it is.
func TestMajorityFirst_OrderAfterAFreeze(t *testing.T) {
	virtual(t, 5, func(t *testing.T, s *site) {
		u := s.user()
		known(t, u)
		home := quorum.Order(u.Client, "l")[0]
		frozen, thaw := atomic.Bool{}, make(chan struct{})
		frozen.Store(true)
		u.on(func(_ int, _ string, _ []any, next func() error) error {
			if frozen.Load() {
				<-thaw
			}
			return next()
		}, home)
		take := func() {
			locktest.NoError(t, u.lock("l").Do(t.Context(), func(context.Context, int64) error { return nil }))
			locktest.Sleep(100 * time.Millisecond)
		}
		for range 30 {
			take()
		}
		frozen.Store(false)
		close(thaw)
		began := time.Now()
		for quorum.Order(u.Client, "l")[0] != home && time.Since(began) < time.Minute {
			take()
		}
		tookAtMost(t, began, 5*time.Second, "the way back")
	})
}

// A hold that is forced open before it is on all nodes comes to no other node, also where the force has reached one of its nodes only.
func TestMajorityFirst_ForcedOpenAtOnce(t *testing.T) {
	for _, away := range []int{0, 2} {
		virtual(t, 5, func(t *testing.T, s *site) {
			u, admin := s.user(), s.user()
			known(t, u)
			known(t, admin)
			held, _, err := u.lock("l").LockAndGetToken(t.Context())
			locktest.NoError(t, err)
			locktest.Sleep(time.Millisecond)
			admin.on(func(_ int, op string, _ []any, next func() error) error {
				if op == "withdraw" {
					return errRefused
				}
				return next()
			}, quorum.Order(u.Client, "l")[:away]...)
			_, _ = admin.lock("l").ForceUnlock(t.Context())
			locktest.Sleep(20 * time.Millisecond)
			if n := s.has("l"); n > away {
				t.Errorf("%d nodes have a hold that was forced open on all but %d", n, away)
			}
			_ = u.lock("l").Unlock(held)
		})
	}
}

// Nothing is sent for a hold that is over, or whose client is closed.
func TestMajorityFirst_NoSpreadAfterTheEnd(t *testing.T) {
	virtual(t, 5, func(t *testing.T, s *site) {
		u := s.user()
		known(t, u)
		held, _, err := u.lock("l").LockLeaseAndGetToken(t.Context(), 10*time.Millisecond)
		locktest.NoError(t, err)
		counted := count(u)
		<-held.Done()
		locktest.Sleep(5 * time.Millisecond)
		locktest.Equal(t, "nodes that were asked for their votes after a lease", counted.nodes("vote"), 0)
		_ = u.lock("l").Unlock(held)
		locktest.Sleep(time.Second)

		_, _, err = u.lock("l").LockAndGetToken(t.Context())
		locktest.NoError(t, err)
		locktest.NoError(t, u.Close())
		counted = count(u)
		locktest.Sleep(time.Second)
		locktest.Equal(t, "nodes that were asked for their votes after Close", counted.nodes("vote"), 0)

		u = s.user()
		known(t, u)
		_, _, err = u.lock("another").LockAndGetToken(t.Context())
		locktest.NoError(t, err)
		var votes atomic.Int32
		u.on(func(_ int, op string, args []any, next func() error) error {
			if op == "vote" && slices.Contains(args, any("another")) {
				votes.Add(1)
			} else if op == "vote" {
				time.Sleep(50 * time.Millisecond) // what Close waits for
			}
			return next()
		}, 0, 1, 2, 3, 4)
		call := locktest.Start(func() error { return u.lock("l").Do(t.Context(), func(context.Context, int64) error { return nil }) })
		locktest.Sleep(time.Millisecond)
		over, cancel := context.WithCancel(t.Context())
		cancel()
		locktest.IsError(t, u.Shutdown(over), context.Canceled)
		locktest.IsError(t, <-call, rlock.ErrClosed)
		locktest.Sleep(time.Second)
		locktest.Equal(t, "nodes that were asked for their votes since Shutdown", votes.Load(), 0)
	})
}
