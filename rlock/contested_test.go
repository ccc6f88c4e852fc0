package rlock_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/fencelock/fencelock/rlock"
)

// contested is a lock that one client holds and another waits for.
type contested struct {
	*fenced.Lock
	held  context.Context
	token int64
	other *fenced.Lock
	next  <-chan locktest.Result // the other client's turn
}

// contest takes the locks for one client, and has another one wait for them. Their tokens have the clock for a floor: a counter
// that loses its last values in a failover, as each can, gives them out again.
func contest(t *testing.T, one, two *rlock.Client, lease time.Duration, names ...string) []*contested {
	t.Helper()
	locks := make([]*contested, len(names))
	for i, name := range names {
		l := &contested{Lock: withClockFloor(one, name), other: withClockFloor(two, name)}
		var err error
		l.held, l.token, err = l.LockLeaseAndGetToken(t.Context(), lease)
		locktest.NoError(t, err)
		l.next = locktest.StartFenced(func() (context.Context, int64, error) { return l.other.LockAndGetToken(t.Context()) })
		locks[i] = l
	}
	for _, l := range locks {
		redistest.Eventually(t, bound, func() bool { _, idle := two.InQueue(l.Name()); return idle }, "somebody waits for %q", l.Name())
	}
	return locks
}

// intact requires that the hold has come through it: its context is alive, Redis knows of it, it can be re-entered, and
// nobody else has got in.
func (l *contested) intact(t *testing.T) {
	t.Helper()
	inner, token, err := l.LockAndGetToken(l.held)
	if err != nil {
		t.Fatalf("re-entry of %q: %v", l.Name(), err)
	}
	if token <= l.token {
		t.Errorf("Inv2: %q: token %d after %d", l.Name(), token, l.token)
	}
	l.token = token
	if held, err := l.IsHeld(inner); err != nil || !held {
		t.Errorf("%q is held, says Redis: %v, %v", l.Name(), held, err)
	}
	locktest.NoError(t, l.Unlock(inner))
	locktest.NoError(t, l.Check(l.held))
	select {
	case got := <-l.next:
		t.Fatalf("Inv1: %q was taken while it was held: %v", l.Name(), got.Err)
	default:
	}
}

// pass unlocks, and requires that the waiter gets the lock, with a larger token, and can unlock it.
func (l *contested) pass(t *testing.T) {
	t.Helper()
	if err := l.Unlock(l.held); err != nil {
		t.Fatalf("unlock of %q: %v", l.Name(), err)
	}
	l.passed(t)
}

// passed is pass without the unlock.
func (l *contested) passed(t *testing.T) {
	t.Helper()
	got := redistest.Await(t, failoverBound, l.next, "the waiter's turn at %s", l.Name())
	if got.Err != nil {
		t.Fatalf("the waiter for %q: %v", l.Name(), got.Err)
	}
	if got.Token <= l.token {
		t.Errorf("Inv2: %q: token %d after %d", l.Name(), got.Token, l.token)
	}
	if err := l.other.Unlock(got.Ctx); err != nil {
		t.Fatalf("the waiter's unlock of %q: %v", l.Name(), err)
	}
}

// withClockFloor returns a lock whose tokens have the clock for a floor.
func withClockFloor(c *rlock.Client, name string) *fenced.Lock {
	return fenced.NewLock(c, name, fenced.WithClockFloor())
}

// awaitRenewals returns when the lease of every lock was renewed, as the server that has the lock now tells.
func awaitRenewals(t *testing.T, locks []*contested) {
	t.Helper()
	before, longer := make([]time.Duration, len(locks)), make([]bool, len(locks))
	var missing string
	redistest.Settles(t, failoverBound, func() bool {
		missing = ""
		for i, l := range locks {
			if longer[i] {
				continue
			}
			if ttl, err := l.TTL(l.held); err == nil && ttl > 0 {
				longer[i] = before[i] > 0 && ttl > before[i]
				before[i] = ttl
			}
			if !longer[i] {
				missing += " " + l.Name()
			}
		}
		return missing == ""
	}, "the leases are renewed, but those of:%v", later{&missing})
}

// wantClean requires that on these servers nothing is left in the end but counters, and nothing on the clients' books.
func wantClean(t *testing.T, clients []*rlock.Client, servers ...*redistest.Server) {
	t.Helper()
	var left string
	// What is in doubt is released again and again until a lease after Redis was heard of (P3). The longest lease here is longLease.
	redistest.Settles(t, longLease+failoverBound, func() bool {
		left = ""
		for _, c := range clients {
			left += c.Books()
		}
		for _, s := range servers {
			for _, key := range s.Do("keys", "*").([]any) {
				if !strings.HasPrefix(key.(string), "redisson_lock_token:") {
					left += fmt.Sprintf(" %s at %s", key, s.Addr())
				}
			}
		}
		return left == ""
	}, "nothing is left (Inv9), but: %v", later{&left})
}

// later is text that is looked at when it is printed.
type later struct{ text *string }

func (l later) String() string { return *l.text }
