package rlock_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/realtime"
	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/fencelock/fencelock/rlock"
)

// What a lost hold and a refused call say: what Redis said, and what to do.

// Inv12: a hold whose renewals fail says what Redis said to the last one.
func TestInv12_LostSaysWhatTheLastRenewalHeard(t *testing.T) {
	realtime.Test(t, "leases of 2 s")
	says := func(t *testing.T, l *rlock.Lock, held context.Context, parts ...string) {
		t.Helper()
		select {
		case <-held.Done():
		case <-time.After(bound):
			t.Fatal("the hold is not lost")
		}
		for what, err := range map[string]error{"the cause": context.Cause(held), "Err": held.Err(), "Check": l.Check(held), "Unlock": l.Unlock(held)} {
			if !errors.Is(err, rlock.ErrLost) {
				t.Errorf("%s is no ErrLost: %v", what, err)
			}
			for _, part := range parts {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%s does not say %q: %v", what, part, err)
				}
			}
		}
	}
	t.Run("an error reply", func(t *testing.T) {
		server := realServer(t)
		l := rlock.NewLock(newClient(t, newUser(t, server, "~*", "allchannels", "+@all"), rlock.WithLease(2*time.Second)), "a")
		held, err := l.Lock(t.Context())
		locktest.NoError(t, err)
		server.Do("acl", "setuser", "limited", "-evalsha")
		says(t, l, held, "the lease ran out; last renewal: NOPERM")
		var said redis.Error
		if !errors.As(context.Cause(held), &said) {
			t.Error("what Redis said is not in the error")
		}
	})
	t.Run("no answer", func(t *testing.T) {
		server := realServer(t)
		l := rlock.NewLock(newClient(t, server.Client(), rlock.WithLease(2*time.Second), rlock.WithUnlockTimeout(time.Second)), "a")
		held, err := l.Lock(t.Context())
		locktest.NoError(t, err)
		server.Freeze()
		says(t, l, held, "the lease ran out; last renewal: ")
		if errors.Is(context.Cause(held), context.DeadlineExceeded) {
			t.Error("no deadline of the caller's has passed")
		}
	})
	t.Run("one that is over", func(t *testing.T) {
		server := realServer(t)
		var log locktest.Log
		c := newClient(t, newUser(t, server, "~*", "allchannels", "+@all"), rlock.WithLease(10*time.Second), rlock.WithLogger(log.Logger()))
		l := rlock.NewLock(c, "a")
		held, err := l.Lock(t.Context())
		locktest.NoError(t, err)
		server.Do("acl", "setuser", "limited", "-evalsha")
		redistest.Eventually(t, bound, func() bool { return len(log.With("renewals failed")) > 0 }, "a renewal fails")
		server.Do("acl", "setuser", "limited", "+evalsha")
		redistest.Eventually(t, bound, func() bool { return server.Client().PTTL(t.Context(), "a").Val() > 8*time.Second }, "one succeeds")
		inner, err := l.Lock(held)
		locktest.NoError(t, err)
		locktest.NoError(t, l.Unlock(inner))
		server.Do("del", "a")
		says(t, l, held)
		if text := context.Cause(held).Error(); strings.Contains(text, "last renewal") {
			t.Errorf("the renewal before the last is told of: %s", text)
		}
	})
}

// A key that is no hash any more has no hold: the first renewal that hears of it ends it, not the end of the lease.
func TestRenewalThatFindsAnotherType(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		l := rlock.NewLock(newClient(t, rdb), "l")
		held := take(t, l, t.Context())
		m.Del("l")
		locktest.NoError(t, m.Set("l", "something else"))
		began := time.Now()
		<-held.Done()
		if took := time.Since(began); took > 11*time.Second {
			t.Errorf("it ended after %v, and the first renewal is sent after 10 s", took)
		}
		err := context.Cause(held)
		if !errors.Is(err, rlock.ErrLost) || !strings.Contains(err.Error(), "WRONGTYPE") {
			t.Errorf("it says %v", err)
		}
		if err := l.Unlock(held); !errors.Is(err, rlock.ErrLost) {
			t.Errorf("Unlock says %v", err)
		}
	})
}

// Inv12: a single server's client of a cluster's node is told what to use, and not after the patience.
func TestInv12_MOVEDToASingleServersClient(t *testing.T) {
	t.Parallel()
	c := redistest.Clustered(t, 2, 0)
	var names []string
	for _, name := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
		if c.MasterOf(name) == c.Nodes[1] {
			names = append(names, name)
		}
	}
	if len(names) < 2 {
		t.Fatalf("only %q are at the second node", names)
	}
	client := newClient(t, c.Nodes[0].Client(), rlock.WithPatience(24*time.Hour))
	ctx := withTimeout(t, t.Context(), bound)
	calls := map[string]func(l *rlock.Lock) error{
		"Lock":        func(l *rlock.Lock) error { _, err := l.Lock(ctx); return err },
		"TryLock":     func(l *rlock.Lock) error { _, err := l.TryLock(ctx, 0, 0); return err },
		"IsLocked":    func(l *rlock.Lock) error { _, err := l.IsLocked(ctx); return err },
		"ForceUnlock": func(l *rlock.Lock) error { _, err := l.ForceUnlock(ctx); return err },
	}
	for what, call := range calls {
		err := call(rlock.NewLock(client, names[0]))
		if _, moved := redis.IsMovedError(err); !moved || !strings.Contains(err.Error(), "redis.NewClusterClient") {
			t.Errorf("%s says %v", what, err)
		}
	}
	together := make([]<-chan error, 40) // in company
	for i := range together {
		together[i] = locktest.Start(func() error { return calls["TryLock"](rlock.NewLock(client, names[i%2])) })
	}
	for _, ch := range together {
		if err := redistest.Await(t, bound, ch, "a call in company"); err == nil || !strings.Contains(err.Error(), "redis.NewClusterClient") {
			t.Errorf("in company: %v", err)
		}
	}
	confirmed := newClient(t, c.Nodes[0].Client(), rlock.WithPatience(24*time.Hour), rlock.WithReplicas(1, time.Second))
	if err := calls["Lock"](rlock.NewLock(confirmed, names[0])); err == nil || !strings.Contains(err.Error(), "redis.NewClusterClient") {
		t.Errorf("with replicas: %v", err)
	}
}

// WithFsync on a server without WAITAOF is refused by the first call, whatever its patience, and nothing stays taken.
func TestConfirmed_AServerWithoutWAITAOF(t *testing.T) {
	t.Parallel()
	server := redistest.Real(t)
	if err := server.Client().Do(t.Context(), "waitaof", 0, 0, 1).Err(); err == nil {
		server = redistest.Real(t, "--rename-command", "WAITAOF", "")
	}
	c := newClient(t, server.Client(), rlock.WithPatience(24*time.Hour), rlock.WithFsync(1, 0, time.Second))
	ctx := withTimeout(t, t.Context(), bound)
	for what, call := range map[string]func(l *rlock.Lock) error{
		"Lock":         func(l *rlock.Lock) error { _, err := l.Lock(ctx); return err },
		"TryLock":      func(l *rlock.Lock) error { _, err := l.TryLock(ctx, 0, 0); return err },
		"TryLock, 1 h": func(l *rlock.Lock) error { _, err := l.TryLock(ctx, time.Hour, 0); return err },
	} {
		err := call(rlock.NewLock(c, what))
		locktest.IsError(t, err, rlock.ErrUnconfirmed)
		wantTold(t, err, "Redis 7.2 or later", "leave WithFsync out")
		redistest.Eventually(t, bound, func() bool { return server.Client().Exists(t.Context(), what).Val() == 0 }, "%s: what was taken is released", what)
	}
}

// Clients of Sentinel wake each other, whatever their kind: none of them is of a cluster.
func TestSentinelClientsOfBothKindsWakeEachOther(t *testing.T) {
	t.Parallel()
	s := redistest.Watched(t, 1)
	for what, opts := range map[string][]rlock.Option{
		"auto": nil, "on": {rlock.WithShardedPubSub(true)}, "off": {rlock.WithShardedPubSub(false)},
	} {
		opts := append(opts, rlock.WithPollInterval(time.Hour), rlock.WithLease(10*time.Minute)) // neither is what wakes
		one, two := newClient(t, s.Client(), opts...), newClient(t, s.ClusterClient(), opts...)
		for _, pair := range [][2]*rlock.Client{{one, two}, {two, one}, {two, newClient(t, s.ClusterClient(), opts...)}} {
			holds, waits := rlock.NewLock(pair[0], "a"), rlock.NewLock(pair[1], "a")
			held, err := holds.Lock(t.Context())
			locktest.NoError(t, err)
			var next context.Context
			got := locktest.Start(func() (err error) { next, err = waits.Lock(t.Context()); return err })
			redistest.Eventually(t, bound, func() bool { _, idle := pair[1].InQueue("a"); return idle }, "%s: somebody waits", what)
			redistest.Eventually(t, bound, func() bool {
				return s.Master().Do("pubsub", "numsub", "redisson_lock__channel:{a}").([]any)[1].(int64) > 0
			}, "%s: somebody listens, as a Redisson of Sentinel's does", what)
			locktest.NoError(t, holds.Unlock(held))
			locktest.NoError(t, redistest.Await(t, bound, got, "%s: the waiter", what))
			locktest.NoError(t, waits.Unlock(next))
		}
	}
}
