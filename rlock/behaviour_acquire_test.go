package rlock_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/fencelock/fencelock/rlock"
)

// lockCalls are all acquiring calls that return a context. The lease is the TTL that each asks for.
var lockCalls = []struct {
	name, op string
	waits    bool
	lease    time.Duration
	call     func(l *rlock.Lock, ctx context.Context) (context.Context, error)
}{
	{"Lock", "Lock", true, 30 * time.Second, func(l *rlock.Lock, ctx context.Context) (context.Context, error) { return l.Lock(ctx) }},
	{"LockLease", "LockLease", true, 7 * time.Minute, func(l *rlock.Lock, ctx context.Context) (context.Context, error) {
		return l.LockLease(ctx, 7*time.Minute)
	}},
	{"LockLease 0", "LockLease", true, 30 * time.Second, func(l *rlock.Lock, ctx context.Context) (context.Context, error) {
		return l.LockLease(ctx, 0)
	}},
	{"TryLock 0 0", "TryLock", false, 30 * time.Second, func(l *rlock.Lock, ctx context.Context) (context.Context, error) {
		return l.TryLock(ctx, 0, 0)
	}},
	{"TryLock wait 0", "TryLock", true, 30 * time.Second, func(l *rlock.Lock, ctx context.Context) (context.Context, error) {
		return l.TryLock(ctx, time.Minute, 0)
	}},
	{"TryLock 0 lease", "TryLock", false, 7 * time.Minute, func(l *rlock.Lock, ctx context.Context) (context.Context, error) {
		return l.TryLock(ctx, 0, 7*time.Minute)
	}},
	{"TryLock wait lease", "TryLock", true, 7 * time.Minute, func(l *rlock.Lock, ctx context.Context) (context.Context, error) {
		return l.TryLock(ctx, time.Minute, 7*time.Minute)
	}},
}

// Inv1: what any acquiring call takes, a second client does not get until the unlock, and then at once.
func TestBehaviourEveryCallExcludes(t *testing.T) {
	rdb := redistest.New(t)
	late := rlock.WithPollInterval(time.Hour) // later than the message
	first, second := newClient(t, rdb, late), newClient(t, rdb, late)
	for _, c := range lockCalls {
		t.Run(c.name, func(t *testing.T) {
			ctx := t.Context()
			mine, other := rlock.NewLock(first, "l"), rlock.NewLock(second, "l")
			began := time.Now()
			held, err := c.call(mine, ctx)
			locktest.NoError(t, err)
			locktest.NoError(t, held.Err())
			locktest.NoError(t, mine.Check(held))
			wantHolds(t, mine, held, 1)
			if ttl := rdb.PTTL(ctx, "l").Val(); ttl > c.lease || ttl < c.lease-time.Since(began)-time.Millisecond {
				t.Errorf("the key lives for %v, want %v", ttl, c.lease)
			}
			if ttl, err := mine.TTL(ctx); err != nil || ttl > c.lease || ttl < c.lease-time.Since(began)-time.Millisecond {
				t.Errorf("TTL %v %v, want %v", ttl, err, c.lease)
			}
			for _, l := range []*rlock.Lock{mine, other} { // both as someone new
				wantLocked(t, l, true)
				got, err := l.TryLock(ctx, 0, 0)
				locktest.IsError(t, err, rlock.ErrNotAcquired)
				locktest.Equal(t, "context", got, ctx)
				wantTaken(t, func(wait time.Duration) error {
					got, err := l.TryLock(ctx, wait, 0)
					locktest.Equal(t, "context", got, ctx)
					return err
				})
			}
			if !c.waits {
				locktest.NoError(t, mine.Unlock(held))
				return
			}
			next := locktest.StartLock(func() (context.Context, error) { return c.call(other, ctx) })
			waitsForLock(t, rdb)
			locktest.NothingComes(t, next, 10*time.Millisecond, "the lock was taken twice")
			locktest.NoError(t, mine.Unlock(held))
			got := redistest.Await(t, soon, next, "the message of the unlock")
			locktest.NoError(t, got.Err)
			locktest.NoError(t, other.Unlock(got.Ctx))
			wantLocked(t, mine, false)
		})
	}
}

// Inv12: bad arguments fail before Redis is asked, on an error the context is the one passed in, and the error is an
// *Error with the method and the lock's name.
func TestBehaviourBadArguments(t *testing.T) {
	rdb := redistest.New(t)
	spy := locktest.SpyOn(rdb)
	client := newClient(t, rdb)
	good, nameless, clientless := rlock.NewLock(client, "l"), rlock.NewLock(client, ""), rlock.NewLock(nil, "l")
	const year = 365 * 24 * time.Hour
	ctx := t.Context()
	never := func(context.Context) error { t.Error("fn ran"); return nil }
	for name, c := range map[string]struct {
		op, says string
		call     func() (context.Context, error)
	}{
		"wait -1":         {"TryLock", "negative", func() (context.Context, error) { return good.TryLock(ctx, -1, 0) }},
		"wait -1 s":       {"TryLock", "negative", func() (context.Context, error) { return good.TryLock(ctx, -time.Second, 0) }},
		"do wait -1":      {"Do", "negative", func() (context.Context, error) { return ctx, good.Do(ctx, never, rlock.Wait(-1)) }},
		"lease 5 ms":      {"TryLock", "lease", func() (context.Context, error) { return good.TryLock(ctx, 0, 5*time.Millisecond) }},
		"lease 9.9 ms":    {"LockLease", "lease", func() (context.Context, error) { return good.LockLease(ctx, 9900*time.Microsecond) }},
		"lease -1":        {"LockLease", "lease", func() (context.Context, error) { return good.LockLease(ctx, -1) }},
		"lease 101 years": {"LockLease", "lease", func() (context.Context, error) { return good.LockLease(ctx, 101*year) }},
		"do lease 5 ms": {"Do", "lease", func() (context.Context, error) {
			return ctx, good.Do(ctx, never, rlock.Wait(0), rlock.Lease(5*time.Millisecond))
		}},
		"do nil":          {"Do", "fn is nil", func() (context.Context, error) { return ctx, good.Do(ctx, nil) }},
		"no name":         {"Lock", "name", func() (context.Context, error) { return nameless.Lock(ctx) }},
		"no name, locked": {"IsLocked", "name", func() (context.Context, error) { _, err := nameless.IsLocked(ctx); return ctx, err }},
		"no name, held":   {"IsHeld", "name", func() (context.Context, error) { _, err := nameless.IsHeld(ctx); return ctx, err }},
		"no name, count":  {"HoldCount", "name", func() (context.Context, error) { _, err := nameless.HoldCount(ctx); return ctx, err }},
		"no name, ttl":    {"TTL", "name", func() (context.Context, error) { _, err := nameless.TTL(ctx); return ctx, err }},
		"no name, force":  {"ForceUnlock", "name", func() (context.Context, error) { _, err := nameless.ForceUnlock(ctx); return ctx, err }},
		"no client":       {"Lock", "client", func() (context.Context, error) { return clientless.Lock(ctx) }},
		"no client, do":   {"Do", "client", func() (context.Context, error) { return ctx, clientless.Do(ctx, never) }},
		"no client, ttl":  {"TTL", "client", func() (context.Context, error) { _, err := clientless.TTL(ctx); return ctx, err }},
	} {
		got, err := c.call()
		var e *rlock.Error
		if !errors.As(err, &e) || e.Op != c.op || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: error %v, want an *Error of %s that says %q", name, err, c.op, c.says)
			continue
		}
		if got != ctx {
			t.Errorf("%s: another context came back", name)
		}
		if want := "l"; c.says != "name" && e.Lock != want {
			t.Errorf("%s: lock %q, want %q", name, e.Lock, want)
		}
		if errors.Is(err, rlock.ErrNotAcquired) {
			t.Errorf("%s: %v is ErrNotAcquired", name, err)
		}
	}
	for _, script := range []string{"acquire", "level", "inspect", "unlock"} {
		locktest.Equal(t, "calls of "+script, spy.Count(script), 0)
	}
}

// The ends of the range of leases work.
func TestBehaviourLeaseRange(t *testing.T) {
	rdb, l := newLock(t)
	held, err := l.LockLease(t.Context(), 100*365*24*time.Hour)
	locktest.NoError(t, err)
	locktest.NoError(t, held.Err())
	if ttl := rdb.PTTL(t.Context(), "l").Val(); ttl < 99*365*24*time.Hour {
		t.Errorf("the key lives for %v", ttl)
	}
	locktest.NoError(t, l.Unlock(held))
	held, err = l.LockLease(t.Context(), 10*time.Millisecond)
	if err == nil { // a busy machine may not answer within 10 ms
		redistest.Eventually(t, soon, func() bool { return held.Err() != nil }, "10 ms are over")
		locktest.IsError(t, l.Unlock(held), rlock.ErrLost)
	}
}

// Inv12: New says what is wrong with its arguments.
func TestBehaviourNewRefuses(t *testing.T) {
	rdb := redistest.New(t)
	ring := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"a": rdb.Options().Addr}})
	defer ring.Close()
	cluster := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{rdb.Options().Addr}, ReadOnly: true})
	defer cluster.Close()
	for name, c := range map[string]struct {
		rdb  redis.UniversalClient
		opt  rlock.Option
		says string
	}{
		"nil":            {nil, nil, "nil"},
		"nil client":     {(*redis.Client)(nil), nil, "rdb is nil"},
		"nil cluster":    {(*redis.ClusterClient)(nil), nil, "rdb is nil"},
		"ring":           {ring, nil, "Ring"},
		"replicas":       {cluster, nil, "replicas"},
		"wrapped ring":   {struct{ redis.UniversalClient }{ring}, nil, "AddHook"},
		"lease 5 ms":     {rdb, rlock.WithLease(5 * time.Millisecond), "WithLease"},
		"lease 0":        {rdb, rlock.WithLease(0), "WithLease"},
		"poll 0":         {rdb, rlock.WithPollInterval(0), "WithPollInterval"},
		"unlock timeout": {rdb, rlock.WithUnlockTimeout(-1), "WithUnlockTimeout"},
		"patience":       {rdb, rlock.WithPatience(0), "WithPatience"},
		"logger":         {rdb, rlock.WithLogger(nil), "WithLogger"},
	} {
		var opts []rlock.Option
		if c.opt != nil {
			opts = append(opts, c.opt)
		}
		client, err := rlock.New(c.rdb, opts...)
		if client != nil || err == nil || !strings.HasPrefix(err.Error(), "rlock: ") || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: New: %v, %v, want an error that says %q", name, client, err, c.says)
		}
	}
}

// P16: in a cluster a name whose keys are in different slots is an argument error, before anybody is asked; elsewhere it
// is allowed.
func TestBehaviourClusterNames(t *testing.T) {
	cluster := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"127.0.0.1:1"}})
	defer cluster.Close()
	client := newClient(t, cluster)
	single := newClient(t, redistest.New(t))
	ctx, cancel := context.WithTimeout(t.Context(), soon)
	defer cancel()
	for _, name := range []string{"a{b", "a{}b", "{}", "a}b", "}x"} {
		_, err := rlock.NewLock(client, name).Lock(ctx)
		var e *rlock.Error
		if !errors.As(err, &e) || e.Lock != name || !strings.Contains(err.Error(), "slot") {
			t.Errorf("%q in a cluster: %v", name, err)
		}
		l := rlock.NewLock(single, name)
		locktest.NoError(t, l.Unlock(take(t, l, t.Context())))
	}
}

// Inv12: ErrNotHeld says which of its cases it is, and the error is an *Error.
func TestBehaviourNotHeld(t *testing.T) {
	rdb, l := newLock(t)
	ctx := t.Context()
	other := rlock.NewLock(newClient(t, rdb), "other")
	for _, c := range []struct {
		name, says string
		ctx        func() context.Context
	}{
		{"no holder", "no holder in ctx", func() context.Context { return ctx }},
		{"unlocked already", "unlocked already", func() context.Context {
			held := take(t, l, ctx)
			locktest.NoError(t, l.Unlock(held))
			return held
		}},
		{"another holder", "another holder", func() context.Context {
			held := take(t, l, ctx)
			t.Cleanup(func() { locktest.NoError(t, l.Unlock(held)) })
			return rlock.NewHolder(held)
		}},
		{"holder of another lock", "another holder", func() context.Context { return take(t, other, ctx) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			given := c.ctx()
			before := rdb.HGetAll(ctx, "l").Val()
			err := l.Unlock(given)
			locktest.IsError(t, err, rlock.ErrNotHeld)
			locktest.IsNotError(t, err, rlock.ErrLost, rlock.ErrUnlocked, rlock.ErrNotAcquired)
			var e *rlock.Error
			if !errors.As(err, &e) || e.Op != "Unlock" || e.Lock != "l" || !strings.Contains(err.Error(), c.says) {
				t.Errorf("error %v does not say %q", err, c.says)
			}
			locktest.Equal(t, "the lock in Redis", fmt.Sprint(rdb.HGetAll(ctx, "l").Val()), fmt.Sprint(before))
		})
	}
}

// Inv12: an acquire with a context that is over says why, is not sent, and holds nothing.
func TestBehaviourEndedContext(t *testing.T) {
	rdb, l := newLock(t)
	spy := locktest.SpyOn(rdb)
	why := errors.New("the user's reason")
	ended, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	for _, c := range lockCalls {
		got, err := c.call(l, ended)
		locktest.IsError(t, err, context.Canceled, why)
		var e *rlock.Error
		if !errors.As(err, &e) || e.Op != c.op || e.Lock != "l" {
			t.Errorf("%s: %v", c.name, err)
		}
		locktest.Equal(t, "context", got, context.Context(ended))
	}
	locktest.Equal(t, "acquires", spy.Count("acquire"), 0)
}

// A context that ends while it waits ends the wait, with its cause; nothing is left in the queue.
func TestBehaviourContextEndsWait(t *testing.T) {
	_, l := newLock(t)
	held := take(t, l, t.Context())
	for _, c := range lockCalls {
		if !c.waits {
			continue
		}
		why := errors.New("the user's reason")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(20*time.Millisecond, func() { cancel(why) })
		got, err := c.call(l, ctx)
		locktest.IsError(t, err, context.Canceled, why)
		locktest.IsNotError(t, err, rlock.ErrNotAcquired)
		locktest.Equal(t, "context", got, context.Context(ctx))

		late, stop := context.WithTimeout(t.Context(), 20*time.Millisecond)
		got, err = c.call(l, late)
		locktest.IsError(t, err, context.DeadlineExceeded)
		locktest.IsNotError(t, err, rlock.ErrNotAcquired)
		locktest.Equal(t, "context", got, context.Context(late))
		stop()
	}
	locktest.NoError(t, l.Unlock(held))
	again, err := l.TryLock(t.Context(), 0, 0)
	locktest.NoError(t, err)
	locktest.NoError(t, l.Unlock(again))
}

// ForceUnlock frees the lock whoever holds it, and says whether there was something to free.
func TestBehaviourForceUnlock(t *testing.T) {
	rdb, l := newLock(t)
	ctx := t.Context()
	other := rlock.NewLock(newClient(t, rdb), "l")
	freed, err := l.ForceUnlock(ctx)
	locktest.NoError(t, err)
	locktest.Equal(t, "freed", freed, false)

	held := take(t, l, ctx)
	freed, err = other.ForceUnlock(ctx)
	locktest.NoError(t, err)
	locktest.Equal(t, "freed", freed, true)
	wantLocked(t, l, false)
	next := take(t, other, ctx)
	locktest.IsError(t, l.Unlock(held), rlock.ErrLost) // and leaves the next hold alone
	wantHolds(t, other, next, 1)
	locktest.NoError(t, other.Unlock(next))
	locktest.IsError(t, l.Unlock(held), rlock.ErrNotHeld)
}

// TTL speaks as go-redis does: -2 without a key, -1 without an expiry.
func TestBehaviourTTL(t *testing.T) {
	rdb, l := newLock(t)
	ttl, err := l.TTL(t.Context())
	locktest.NoError(t, err)
	locktest.Equal(t, "without a key", ttl, -2)
	locktest.NoError(t, rdb.HSet(t.Context(), "l", "someone:1", 1).Err())
	ttl, err = l.TTL(t.Context())
	locktest.NoError(t, err)
	locktest.Equal(t, "without an expiry", ttl, -1)
}
