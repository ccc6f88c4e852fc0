package interop

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/fencelock/fencelock/rlock"
)

// side returns a side of a read-write lock of ours.
func side(c *rlock.Client, k kind, name string) *fenced.Lock {
	l := fenced.NewRWLock(c, name)
	if k == writeKind {
		return l.Write()
	}
	return l.Read()
}

// rwChannel is the channel on which both sides tell that a read-write lock is open.
func rwChannel(name string) string {
	if strings.Contains(name, "{") {
		return "redisson_rwlock:" + name
	}
	return "redisson_rwlock:{" + name + "}"
}

// readKeys are the keys of the holds that read.
func (s *site) readKeys() []string {
	s.t.Helper()
	return slices.DeleteFunc(s.keys(), func(key string) bool { return !strings.Contains(key, ":rwlock_timeout:") })
}

// inLine waits until so many clients of ours are in the line of the lock.
func (s *site) inLine(name string, n int64) {
	s.t.Helper()
	redistest.Eventually(s.t, patience, func() bool {
		return s.rdb.ZCard(context.Background(), "fencelock_line:{"+name+"}").Val() == n
	}, "%d clients are in the line", n)
}

// counterAlone requires that nothing is left of the lock but its counter.
func (s *site) counterAlone(name string) {
	s.t.Helper()
	equal(s.t, "keys that are left", strings.Join(s.keys(), " "), "redisson_lock_token:{"+name+"}")
}

// notTheirs requires that Redisson refuses a thread the unlock of what it does not hold.
func notTheirs(t testing.TB, java *javaLock) {
	t.Helper()
	if _, err := java.try("unlock"); err == nil || !strings.Contains(err.Error(), "IllegalMonitorStateException") {
		t.Fatalf("unlock of a %s lock that the thread does not hold: %v", java.kind, err)
	}
}

// isLocked requires what our side of the lock says.
func isLocked(t testing.TB, what string, l *fenced.Lock, want bool) {
	t.Helper()
	is, err := l.IsLocked(context.Background())
	noError(t, err)
	equal(t, what+": IsLocked", is, want)
}

// refused requires that our side of the lock cannot be taken now.
func refused(t testing.TB, l *fenced.Lock) {
	t.Helper()
	_, _, err := l.TryLockAndGetToken(context.Background(), 0, 0)
	isError(t, err, rlock.ErrNotAcquired)
}

// passing tells whether an error of an acquire that waits for milliseconds is one of its wait.
func passing(err error) bool {
	return errors.Is(err, rlock.ErrNotAcquired) || errors.Is(err, context.DeadlineExceeded)
}

// milliseconds is a time to live that Redisson has told.
func milliseconds(n int64) time.Duration { return time.Duration(n) * time.Millisecond }
