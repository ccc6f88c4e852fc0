package rlock_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/internal/redistest"
	"github.com/fencelock/fencelock/rlock"
)

// What does not go away by itself is told at once, by every call (DESIGN 5.12, "a clear error, not ridden out").
func TestInv12_ErrorsThatStayAreToldAtOnce(t *testing.T) {
	s := faultNew(t)
	l := fenced.NewLock(s.other(), "a")
	ctx := t.Context()
	outer := faultLock(t, l, ctx, 1)
	inner := faultLock(t, l, outer, 2)
	faultNo(t, s.direct.Del(ctx, "a").Err())
	faultNo(t, s.direct.Set(ctx, "a", "x", 0).Err())
	for _, call := range []struct {
		what string
		call func() error
	}{
		{"IsLocked", func() error { _, err := l.IsLocked(ctx); return err }},
		{"RemainTTL", func() error { _, err := l.RemainTTL(ctx); return err }},
		{"HoldCount", func() error { _, err := l.HoldCount(inner); return err }},
		{"ForceUnlock", func() error { _, err := l.ForceUnlock(ctx); return err }},
		{"a re-entry", func() error { _, err := l.Lock(inner); return err }},
		{"an inner Unlock", func() error { return l.Unlock(inner) }},
		{"Unlock", func() error { return l.Unlock(outer) }},
	} {
		began := time.Now()
		faultTold(t, call.call(), "WRONGTYPE")
		faultWithin(t, began, time.Second, call.what+" of a key that is no lock") // and is not ridden out
	}
}

// Calls that wait behind one another for a Redis that is not there are all told within the patience and one attempt, not
// one after another.
func TestInv12_ManyWaitersAndNoRedis(t *testing.T) {
	for what, away := range map[string]func(*redistest.Server){"refused": (*redistest.Server).Kill, "frozen": (*redistest.Server).Freeze} {
		t.Run(what, func(t *testing.T) {
			server := faultReal(t)
			const patience = time.Second
			rdb := server.Client(func(o *redis.Options) { o.ReadTimeout = 500 * time.Millisecond })
			l := rlock.NewLock(faultClient(t, rdb, rlock.WithPatience(patience)), "a")
			faultNo(t, rdb.Ping(t.Context()).Err())
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
				faultTold(t, redistest.Await(t, faultBound, told, "more than %d of %d waiters are told", i, waiters))
			}
			faultWithin(t, began, patience+2*time.Second, "telling all")
		})
	}
}

// A user whose rights end between two commands of the script: what is left behind would be a lock without an expiry, that
// nobody holds and nobody ever releases (P7).
func TestP7_AcquireThatFailsHalfwayLeavesNoLock(t *testing.T) {
	server := faultReal(t)
	l := fenced.NewLock(faultClient(t, faultUser(t, server, "~*", "&*", "+@all", "-pexpire")), "a")
	_, err := l.TryLock(t.Context(), 0, 0)
	faultTold(t, err)
	direct := server.Client()
	redistest.Eventually(t, 3*time.Second, func() bool { return direct.Exists(t.Context(), "a").Val() == 0 },
		"nothing is left of %v (expiry %v)", err, direct.PTTL(t.Context(), "a").Val())
}
