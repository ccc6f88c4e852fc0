package rlock_test

import (
	"context"
	"io"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/rlock"
)

// P12: the queue of what Close gives up is kept until that is released: its last user may not go while another takes its
// mutex and then the client's.
func TestRetainCloseKeepsTheQueue(t *testing.T) {
	bhVirtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		s := retainNew(t, m, rdb)
		s.until(t, func() bool { return s.spy.count("retain") == 2 })
		s.until(t, func() bool { return len(s.fields()) == 0 })
		bhJavaHolds(t, rdb, 30*time.Second) // for longer than the client counts messages after a release
		call := s.call(t)
		bhAsleep(50 * time.Millisecond)
		m.Del("l")
		rdb.Publish(t.Context(), bhChannel, "0")
		s.unlock(t, <-call)
		bhEqual(t, "retained", len(s.fields()), 1)
		var books string
		s.spy.wrap(func(ops []string, next func() error) error {
			if slices.Contains(ops, "unlock") {
				time.Sleep(50 * time.Millisecond) // the guard has run
				books = s.c.Books()
			}
			return next()
		})
		bhOK(t, s.c.Close())
		bhEqual(t, "books before the release", books, "1 queues, 0 holds, 0 releases")
		s.free(t, retainOver)
	})
}

// Inv1: what is retained is not given to a call while another one of the client has the lock.
func TestRetainGoneAndTaken(t *testing.T) {
	bhVirtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		s := retainNew(t, m, rdb)
		s.until(t, func() bool { return s.spy.count("retain") > 0 && len(s.fields()) == 1 })
		m.Del("l")
		first, err := s.l.TryLock(t.Context(), time.Minute, time.Second) // which it does not suit
		bhOK(t, err)
		_, err = s.l.TryLock(t.Context(), 0, 0)
		bhIs(t, err, rlock.ErrNotAcquired)
		bhOK(t, s.l.Check(first))
		bhOK(t, s.l.Unlock(first))
		s.free(t, retainOver)
	})
}

// A waiter that wants something else than was retained is not overtaken by a call that comes later and wants that.
func TestRetainIsForTheLineFirst(t *testing.T) {
	bhVirtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		s := retainNew(t, m, rdb)
		s.until(t, func() bool { return s.spy.count("retain") > 0 && len(s.fields()) == 1 })
		var order []string
		handLine(2, func(i int) {
			held, err := s.l.LockLease(t.Context(), []time.Duration{time.Second, 0}[i])
			bhOK(t, err)
			order = append(order, []string{"first", "second"}[i])
			bhOK(t, s.l.Unlock(held))
		})()
		bhEqual(t, "who had the lock before the other", order[0], "first")
		s.free(t, retainOver)
	})
}

// A call that does not wait finds the lock free although it was retained for another kind of call.
func TestRetainForATryOfAnotherKind(t *testing.T) {
	bhVirtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		s := retainNew(t, m, rdb)
		s.retain(t)
		held, err := s.l.TryLock(t.Context(), 0, time.Minute)
		bhOK(t, err)
		bhEqual(t, "commands", s.spy.String(), "unlock acquire")
		bhOK(t, s.l.Unlock(held))
		s.retain(t)
		s.spy.wrap(func([]string, func() error) error {
			time.Sleep(time.Second)
			return &net.OpError{Op: "read", Err: io.EOF}
		})
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		began := time.Now()
		_, err = s.l.TryLock(ctx, 0, time.Minute)
		bhIs(t, err, context.DeadlineExceeded)
		bhEqual(t, "it took", time.Since(began), 100*time.Millisecond) // Inv6
		s.spy.wrap(nil)
		bhAsleep(10 * time.Second) // the release is sent again
		s.free(t, retainOver)
	})
}
