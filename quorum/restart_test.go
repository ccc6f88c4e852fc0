package quorum_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/quorum"
	"github.com/fencelock/fencelock/rlock"
)

// The known counterexample: of five nodes A can reach three, and locks them; one of these restarts empty; B can reach that
// one and the other two. B must not get a majority as long as A may trust its hold, and gets it afterwards. Where every
// node counts, however young, both have the lock.
func TestDelayedRestart(t *testing.T) {
	for _, naive := range []bool{false, true} {
		virtual(t, 5, func(t *testing.T, s *site) {
			a := s.user()
			a.down(3, 4)
			began := time.Now()
			held, _, err := a.lock("l").LockLeaseAndGetToken(t.Context(), 30*time.Second)
			locktest.NoError(t, err)
			s.restart(2)
			a.down(0, 1, 2, 3, 4)
			b := s.user(rlock.WithPatience(2 * time.Second))
			if naive {
				quorum.Naive(b.Client)
			}
			b.down(0, 1)
			l := b.lock("l")
			got, _, err := l.TryLockAndGetToken(t.Context(), 0, 0)
			if naive {
				locktest.NoError(t, err)
				locktest.NoError(t, got.Err())
				if held.Err() != nil {
					t.Fatal("the counterexample shows nothing: A's hold is over")
				}
				return
			}
			locktest.IsError(t, err, quorum.ErrNoMajority)
			locktest.IsError(t, err, quorum.ErrRestarted)
			if !strings.Contains(err.Error(), "1 of 5 nodes started less than 31s ago and may have forgotten holds") {
				t.Errorf("the error does not say why: %v", err)
			}
			for {
				if got, _, err = l.LockAndGetToken(t.Context()); err == nil {
					break
				}
				locktest.IsError(t, err, quorum.ErrNoMajority)
			}
			locktest.IsError(t, held.Err(), rlock.ErrLost)
			if took := time.Since(began); took < 30*time.Second || took > 33*time.Second {
				t.Errorf("B got it after %v", took)
			}
			locktest.NoError(t, l.Unlock(got))
		})
	}
}

// A node that restarts does not count for an extension either, and not for a re-entry: a hold that has only two others
// ends in time, although all three have it again. With a stable token a re-entry has no second round, in which the node would be found out.
func TestDelayedRestartForExtensions(t *testing.T) {
	t.Run("a token for each level", func(t *testing.T) { delayedRestartForExtensions(t) })
	t.Run("one token", func(t *testing.T) { delayedRestartForExtensions(t, fenced.WithStableToken()) })
}

func delayedRestartForExtensions(t *testing.T, opts ...fenced.Option) {
	virtual(t, 5, func(t *testing.T, s *site) {
		u := s.user()
		u.down(3, 4)
		began := time.Now()
		l := u.lock("l", opts...)
		held, _, err := l.LockAndGetToken(t.Context())
		locktest.NoError(t, err)
		s.restart(2)
		locktest.Sleep(12 * time.Second)
		if s.fields("l")[2] == "" {
			t.Error("a node that forgot the hold was not told of it again")
		}
		short, cancel := context.WithTimeout(held, 100*time.Millisecond)
		defer cancel()
		if _, _, err := l.LockAndGetToken(short); err == nil {
			t.Fatal("a re-entry was counted by a node that may have forgotten who had the lock")
		}
		<-held.Done()
		if took := time.Since(began); took > 30*time.Second {
			t.Errorf("the hold was trusted for %v", took)
		}
		locktest.IsError(t, context.Cause(held), rlock.ErrLost)
		_ = l.Unlock(held)
	})
}

// The same with the two others within reach: they take the hold anew, and it goes on. Once the node counts again, it
// may fail that one of the first three.
func TestRepairKeepsAHold(t *testing.T) {
	virtual(t, 5, func(t *testing.T, s *site) {
		u := s.user()
		u.down(3, 4)
		l := u.lock("l")
		held, _, err := l.LockAndGetToken(t.Context())
		locktest.NoError(t, err)
		u.up()
		s.restart(2)
		locktest.Sleep(11 * time.Second)
		locktest.Equal(t, "nodes that have the lock", s.has("l"), 5)
		locktest.Sleep(40 * time.Second)
		s.restart(0)
		u.down(1)
		locktest.Sleep(5 * time.Minute)
		locktest.NoError(t, held.Err())
		_, _, err = s.user().lock("l").TryLockAndGetToken(t.Context(), 0, 0)
		locktest.IsError(t, err, rlock.ErrNotAcquired)
		locktest.NoError(t, l.Unlock(held))
		u.up()
		locktest.Sleep(time.Minute)
		locktest.Equal(t, "nodes that have the lock", s.has("l"), 0)
	})
}

// A node that has forgotten a hold does not say that the lock is free: while it does not count, and with it only a minority would name the
// holder, nobody knows.
func TestWhatARestartedNodeSaysOfAHolder(t *testing.T) {
	virtual(t, 5, func(t *testing.T, s *site) {
		impatient := rlock.WithPatience(100 * time.Millisecond) // the hold listens after a second, and is repaired then
		u := s.user(impatient)
		u.down(3, 4)
		l := u.lock("l")
		held, _, err := l.LockAndGetToken(t.Context())
		locktest.NoError(t, err)
		u.up()
		s.restart(2)
		other := s.user(impatient).lock("l")
		_, err = other.IsLocked(t.Context())
		locktest.IsError(t, err, quorum.ErrNoMajority)
		locktest.IsError(t, err, quorum.ErrRestarted)
		_, err = l.IsHeld(held)
		locktest.IsError(t, err, quorum.ErrNoMajority)
		_, err = other.ForceUnlock(t.Context())
		locktest.IsError(t, err, quorum.ErrNoMajority)
		locktest.Sleep(11 * time.Second) // a renewal
		is, err := other.IsLocked(t.Context())
		locktest.NoError(t, err)
		locktest.Equal(t, "it is locked after a renewal", is, true)
		locktest.NoError(t, l.Unlock(held))
	})
}

// A lease longer than the longest is refused before a node is asked; so are other arguments that break the rule.
func TestMaxLease(t *testing.T) {
	virtual(t, 3, func(t *testing.T, s *site) {
		l := s.user(quorum.WithMaxLease(40 * time.Second)).lock("l")
		held, _, err := l.LockLeaseAndGetToken(t.Context(), 40*time.Second)
		locktest.NoError(t, err)
		locktest.NoError(t, l.Unlock(held))
		_, _, err = l.LockLeaseAndGetToken(t.Context(), 41*time.Second)
		if err == nil || !strings.Contains(err.Error(), "use 40s or less") {
			t.Errorf("a lease of 41 s: %v", err)
		}
	})
}

// A node that starts empty and whose clock is set forward then: its uptime says that it is old, but a client that has heard
// from it before knows that it is not. Once it is, it counts.
func TestRestartAndClockSetForward(t *testing.T) {
	for name, c := range map[string]struct {
		idle    time.Duration // for so long before the restart b has heard nothing
		rejoins bool          // b hears from the new run before the clock is set
		fresh   bool          // b has heard from no run before
	}{
		"heard from a second ago":                      {idle: time.Second},
		"heard from before the longest lease":          {idle: 10 * time.Minute},
		"heard from when it was young":                 {idle: 10 * time.Minute, rejoins: true},
		"heard from when it was young, and not before": {rejoins: true, fresh: true},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, 5, func(t *testing.T, s *site) {
				a := s.user()
				b := s.user(rlock.WithPatience(time.Second))
				hear := func() {
					locktest.NoError(t, b.lock("other").Do(t.Context(), func(context.Context, int64) error { return nil }))
					synctest.Wait()
				}
				if !c.fresh {
					hear()
				}
				locktest.Sleep(c.idle)
				a.down(3, 4)
				held, _, err := a.lock("l").LockLeaseAndGetToken(t.Context(), 30*time.Second)
				locktest.NoError(t, err)
				s.restart(2)
				if c.rejoins {
					locktest.Sleep(time.Second)
					hear()
				}
				s.clock(2, time.Hour)
				b.down(0, 1)
				l := b.lock("l")
				for {
					got, _, err := l.LockAndGetToken(t.Context())
					if err == nil {
						locktest.IsError(t, held.Err(), rlock.ErrLost)
						locktest.NoError(t, l.Unlock(got))
						return
					}
					locktest.IsError(t, err, quorum.ErrRestarted)
					if !strings.Contains(err.Error(), "(up for 1h") {
						t.Errorf("the error does not say why: %v", err)
					}
				}
			})
		})
	}
}

// A node that has restarted, and whose clock runs on, counts for a client that has not heard from it since as soon as it is old enough.
func TestRestartWhileAClientIsIdle(t *testing.T) {
	for name, c := range map[string]struct {
		before, after time.Duration // for so long the client is idle before the restart, and after it
		fast          time.Duration // so much the node's clock gains after it
	}{
		"long before":          {time.Hour, 31 * time.Second, 0},
		"in the same moment":   {0, 31 * time.Second, 0},
		"clocks of two speeds": {0, 12 * time.Hour, 5 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, 5, func(t *testing.T, s *site) {
				u := s.user()
				locktest.NoError(t, u.lock("other").Do(t.Context(), func(context.Context, int64) error { return nil }))
				synctest.Wait()
				locktest.Sleep(c.before)
				s.restart(2)
				locktest.Sleep(c.after)
				s.clock(2, c.fast)
				u.down(0, 1)
				held, _, err := u.lock("l").TryLockAndGetToken(t.Context(), 0, 0)
				locktest.NoError(t, err)
				locktest.NoError(t, u.lock("l").Unlock(held))
			})
		})
	}
}

// A node whose clock is set back behind its start does not know its age: a client that has heard from it for long enough
// does.
func TestClockSetBackBehindTheStart(t *testing.T) {
	virtual(t, 3, func(t *testing.T, s *site) {
		old := s.user()
		locktest.NoError(t, old.lock("other").Do(t.Context(), func(context.Context, int64) error { return nil }))
		for i := range 3 {
			s.clock(i, -2*time.Hour)
		}
		fresh := s.user(rlock.WithPatience(time.Second))
		began := time.Now()
		for {
			err := fresh.lock("l").Do(t.Context(), func(context.Context, int64) error { return nil })
			if err == nil {
				break
			}
			locktest.IsError(t, err, quorum.ErrRestarted)
			if !strings.Contains(err.Error(), "its clock was set back behind its start") {
				t.Errorf("the error does not say why: %v", err)
			}
		}
		if took := time.Since(began); took < 31*time.Second || took > 33*time.Second {
			t.Errorf("the nodes count after %v", took)
		}
		// fresh may have the lock while one node does not count for it yet: the release is not known there when Do returns.
		locktest.NoError(t, old.lock("l").Do(t.Context(), func(context.Context, int64) error { return nil }, rlock.Wait(time.Second)))
	})
}

// Tokens after all nodes have lost their counters grow all the same.
func TestTokensAfterLoss(t *testing.T) {
	virtual(t, 5, func(t *testing.T, s *site) {
		var last int64
		for i := range 5 {
			u := s.user() // knows no clocks: it needs a second round
			l := u.lock("l")
			u.down(i, (i+1)%5)
			held, token, err := l.LockAndGetToken(t.Context())
			locktest.NoError(t, err)
			if token <= last {
				t.Fatalf("Inv2: token %d after %d", token, last)
			}
			last = token
			locktest.NoError(t, l.Unlock(held))
			for node := range 5 {
				s.restart(node)
			}
			locktest.Sleep(40 * time.Second)
		}
	})
}
