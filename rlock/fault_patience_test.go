package rlock_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/fencelock/fencelock/rlock"
)

// What does not go away by itself is told at once, by every call. A hold at whose key something else is was lost.
func TestInv12_ErrorsThatStayAreToldAtOnce(t *testing.T) {
	s := newSite(t)
	l := fenced.NewLock(s.other(rlock.WithLease(10*time.Minute)), "a") // no renewal comes first
	ctx := t.Context()
	outer := takeToken(t, l, ctx, 1)
	inner := takeToken(t, l, outer, 2)
	locktest.NoError(t, s.direct.Del(ctx, "a").Err())
	locktest.NoError(t, s.direct.Set(ctx, "a", "x", 0).Err())
	for _, call := range []struct {
		what string
		call func() error
		lost bool
	}{
		{"IsLocked", func() error { _, err := l.IsLocked(ctx); return err }, false},
		{"TTL", func() error { _, err := l.TTL(ctx); return err }, false},
		{"ForceUnlock", func() error { _, err := l.ForceUnlock(ctx); return err }, false},
		{"an inner Unlock", func() error { return l.Unlock(inner) }, true},
		{"a re-entry", func() error { _, _, err := l.LockAndGetToken(outer); return err }, true},
		{"HoldCount", func() error { _, err := l.HoldCount(outer); return err }, true},
		{"Unlock", func() error { return l.Unlock(outer) }, true},
	} {
		began := time.Now()
		if err := call.call(); call.lost {
			lostToAString(t, err)
		} else {
			wantTold(t, err, "WRONGTYPE")
		}
		within(t, began, time.Second, call.what+" of a key that is no lock") // and is not ridden out
	}
}

// Calls that wait behind one another for a Redis that is not there are all told within the patience and one attempt, not
// one after another.
func TestInv12_ManyWaitersAndNoRedis(t *testing.T) {
	for what, away := range map[string]func(*redistest.Server){"refused": (*redistest.Server).Kill, "frozen": (*redistest.Server).Freeze} {
		t.Run(what, func(t *testing.T) {
			server := realServer(t)
			const patience = time.Second
			rdb := server.Client(func(o *redis.Options) { o.ReadTimeout = 500 * time.Millisecond })
			l := rlock.NewLock(newClient(t, rdb, rlock.WithPatience(patience)), "a")
			locktest.NoError(t, rdb.Ping(t.Context()).Err())
			away(server)
			began := time.Now()
			const waiters = 100
			told := make(chan error, waiters)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			for range waiters {
				go func() { _, err := l.Lock(ctx); told <- err }()
			}
			for i := range waiters {
				wantTold(t, redistest.Await(t, bound, told, "more than %d of %d waiters are told", i, waiters))
			}
			within(t, began, patience+2*time.Second, "telling all")
		})
	}
}

// A user whose rights end between two commands of the script: what is left behind would be a lock without an expiry, that
// nobody holds and nobody ever releases (P7).
func TestP7_AcquireThatFailsHalfwayLeavesNoLock(t *testing.T) {
	server := realServer(t)
	l := fenced.NewLock(newClient(t, newUser(t, server, "~*", "&*", "+@all", "-pexpire")), "a")
	_, _, err := l.TryLockAndGetToken(t.Context(), 0, 0)
	wantTold(t, err)
	direct := server.Client()
	redistest.Eventually(t, 3*time.Second, func() bool { return direct.Exists(t.Context(), "a").Val() == 0 },
		"nothing is left of %v (expiry %v)", err, direct.PTTL(t.Context(), "a").Val())
}
