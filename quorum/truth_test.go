package quorum_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fencelock/fencelock/quorum"
	"github.com/fencelock/fencelock/rlock"
)

// logged is what the log was told.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func (l *logged) option() quorum.Option {
	return quorum.WithLockOptions(rlock.WithLogger(slog.New(slog.NewTextHandler(l, nil))))
}

// A client that is closed when all nodes have confirmed its releases has nothing to wait for, or to warn of.
func TestCloseAfterUnlock(t *testing.T) {
	for _, gently := range []bool{false, true} {
		virtual(t, 5, func(t *testing.T, s *site) {
			var log logged
			u := s.user(log.option())
			ok(t, u.lock("l").Do(t.Context(), func(context.Context, int64) error {
				asleep(time.Millisecond) // all nodes have voted
				return nil
			}))
			asleep(time.Millisecond) // and told of the release
			equal(t, "nodes that have the lock", s.has("l"), 0)
			began := time.Now()
			if gently {
				ok(t, u.Shutdown(t.Context()))
			} else {
				ok(t, u.Close())
			}
			if took := time.Since(began); took > 10*time.Millisecond {
				t.Errorf("it took %v", took)
			}
			if strings.Contains(log.String(), "release") {
				t.Errorf("the log says:\n%s", log.String())
			}
		})
	}
}

// P3: a vote that a node hangs on for longer than the lease is released when it comes after all.
func TestP3_VoteLaterThanItsLease(t *testing.T) {
	virtual(t, 5, func(t *testing.T, s *site) {
		u := s.user()
		l := u.lock("l")
		ok(t, l.Do(t.Context(), func(context.Context, int64) error { return nil })) // the nodes know the scripts
		asleep(time.Second)
		var hung atomic.Bool
		u.on(func(_ int, op string, _ []any, next func() error) error {
			if op == "vote" && hung.CompareAndSwap(false, true) {
				time.Sleep(5 * time.Second)
			}
			return next()
		}, 4)
		held, err := l.LockLease(t.Context(), 2*time.Second)
		ok(t, err)
		ok(t, l.Unlock(held))
		asleep(4900 * time.Millisecond)
		equal(t, "the vote is under way", hung.Load(), true)
		asleep(time.Second)
		equal(t, "nodes that have the lock", s.has("l"), 0)
		asleep(time.Minute)
		equal(t, "ballots", quorum.Ballots(u.Client), 0)
	})
}

// P12: Unlock does not say that all was well where the nodes that could tell do not answer, and some of the others were
// freed by somebody else.
func TestP12_UnlockOfAForcedLock(t *testing.T) {
	virtual(t, 5, func(t *testing.T, s *site) {
		u := s.user()
		l := u.lock("l")
		held, err := l.Lock(t.Context())
		ok(t, err)
		asleep(500 * time.Millisecond)
		admin := s.user()
		admin.down(0)
		freed, err := admin.lock("l").ForceUnlock(t.Context())
		ok(t, err)
		equal(t, "freed", freed, true)
		ok(t, held.Err())
		u.down(3, 4)
		is(t, l.Unlock(held), rlock.ErrLost)
	})
}

// Inv12: the error of a majority that was there and went away names all the nodes that are missing, and counts them.
func TestInv12_NodesThatAreMissing(t *testing.T) {
	virtual(t, 5, func(t *testing.T, s *site) {
		u := s.user()
		l := u.lock("l")
		u.down(3, 4)
		u.on(func(_ int, op string, _ []any, next func() error) error {
			if op == "raise" {
				return errors.New("ERR refused")
			}
			return next()
		}, 2)
		_, err := l.TryLock(t.Context(), 0, 0)
		var e *quorum.MajorityError
		if !errors.As(err, &e) || len(e.Failed) != 3 {
			t.Errorf("an acquire: %v", err)
		}
	})
	virtual(t, 5, func(t *testing.T, s *site) {
		var log logged
		u := s.user(log.option())
		l := u.lock("l")
		u.down(3, 4)
		held, err := l.Lock(t.Context())
		ok(t, err)
		s.restart(2)
		asleep(12 * time.Second)
		if !strings.Contains(log.String(), "2 of 5 nodes answered and count") {
			t.Errorf("a renewal:\n%s", log.String())
		}
		_ = l.Unlock(held)
	})
}
