package quorum_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2/server"
	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/fencelock/fencelock/quorum"
	"github.com/fencelock/fencelock/rlock"
)

func TestArguments(t *testing.T) {
	one := redis.NewClient(&redis.Options{})
	two := redis.NewClient(&redis.Options{})
	cluster := redis.NewClusterClient(&redis.ClusterOptions{})
	ring := redis.NewRing(&redis.RingOptions{})
	failover := redis.NewFailoverClient(&redis.FailoverOptions{MasterName: "m"})
	defer func() {
		for _, c := range []redis.UniversalClient{one, two, cluster, ring, failover} {
			_ = c.Close()
		}
	}()
	var typed *redis.Client
	for _, c := range []struct {
		say   string
		nodes []redis.UniversalClient
		opts  []rlock.Option
	}{
		{"no nodes", nil, nil},
		{"node 1: the client is nil", []redis.UniversalClient{one, nil}, nil},
		{"node 0: the client is nil", []redis.UniversalClient{typed}, nil},
		{"is not one server", []redis.UniversalClient{cluster}, nil},
		{"is not one server", []redis.UniversalClient{one, ring}, nil},
		{"is not one server", []redis.UniversalClient{failover}, nil},
		{"the same server", []redis.UniversalClient{one, two, one}, nil},
		{"an option is nil", []redis.UniversalClient{one}, []rlock.Option{nil}},
		{"WithMaxLease(1s)", []redis.UniversalClient{one}, []rlock.Option{quorum.WithMaxLease(time.Second)}},
		{"WithMaxLease(48h0m0s)", []redis.UniversalClient{one}, []rlock.Option{quorum.WithMaxLease(48 * time.Hour)}},
		{"WithNodeTimeout(0s)", []redis.UniversalClient{one}, []rlock.Option{quorum.WithNodeTimeout(0)}},
		{"WithNodeTimeout(10s)", []redis.UniversalClient{one}, []rlock.Option{quorum.WithNodeTimeout(10 * time.Second)}},
		{"WithRetryDelay(2ms, 1ms)", []redis.UniversalClient{one}, []rlock.Option{quorum.WithRetryDelay(2*time.Millisecond, time.Millisecond)}},
		{"WithTries(-1)", []redis.UniversalClient{one}, []rlock.Option{quorum.WithTries(-1)}},
		{"WithLease", []redis.UniversalClient{one}, []rlock.Option{rlock.WithLease(time.Millisecond)}},
	} {
		_, err := quorum.New(c.nodes, c.opts...)
		if err == nil || !strings.Contains(err.Error(), c.say) {
			t.Errorf("got %v, want an error with %q", err, c.say)
		}
	}
	c, err := quorum.New([]redis.UniversalClient{one, two})
	locktest.NoError(t, err)
	defer func() { _ = c.Close() }()
	_, err = fenced.NewSemaphore(c, "a", 3).Acquire(t.Context())
	locktest.ErrorSays(t, err, "a quorum has none")
	_, err = fenced.NewRWLock(c, "a").Read().Acquire(t.Context())
	locktest.ErrorSays(t, err, "a quorum has none")
	_, err = rlock.New(one, quorum.WithTries(3))
	locktest.ErrorSays(t, err, "is for quorum.New")
}

// Two nodes that are one server.
func TestSameServer(t *testing.T) {
	virtual(t, 3, func(t *testing.T, s *site) {
		s.minis[2] = s.minis[0]
		u := s.user()
		l := u.lock("l")
		held, _, err := l.LockAndGetToken(t.Context())
		if err == nil { // by the two that are not the same
			locktest.NoError(t, l.Unlock(held))
			locktest.Sleep(time.Second) // the third has answered by then
			_, _, err = l.LockAndGetToken(t.Context())
		}
		locktest.IsError(t, err, quorum.ErrSameServer)
		_, err = l.IsLocked(t.Context())
		locktest.IsError(t, err, quorum.ErrSameServer)
		for i := range 6 { // one or the other of the two is not asked: each lock has its own order
			_, _, err = u.lock(fmt.Sprint("l", i)).TryLockAndGetToken(t.Context(), 0, 0)
			locktest.IsError(t, err, quorum.ErrSameServer)
		}
		locktest.Sleep(time.Minute)
		locktest.Equal(t, "nodes that have the lock", s.has("l"), 0)
	})
}

// A server that does not tell since when it runs never counts, and the error says why, and what to do, in the server's words.
func TestNoRun(t *testing.T) {
	for what, c := range map[string]struct {
		says  func(c *server.Peer)
		wants []string
	}{
		"forbidden": {
			func(c *server.Peer) { c.WriteError("NOPERM this user has no permissions to run the 'info' command") },
			[]string{"the Redis user needs INFO (NOPERM this user"},
		},
		"unknown":     {func(c *server.Peer) { c.WriteError("ERR unknown command 'INFO'") }, []string{"does not know INFO", "rename-command"}},
		"unsupported": {func(c *server.Peer) { c.WriteError("ERR This Redis command is not allowed from script") }, []string{"(ERR This Redis command is not allowed from script)", "such an engine cannot be a node"}},
		"no run id":   {func(c *server.Peer) { c.WriteBulk("# Server\r\nuptime_in_seconds:99999\r\n") }, []string{"has no run_id", "such an engine cannot be a node"}},
		"no uptime":   {func(c *server.Peer) { c.WriteBulk("# Server\r\nrun_id:abc\r\n") }, []string{"no uptime_in_seconds", "such an engine cannot be a node"}},
	} {
		t.Run(what, func(t *testing.T) {
			virtual(t, 1, func(t *testing.T, s *site) {
				m, rdb := redistest.Pipe(t)
				locktest.NoError(t, rdb.Ping(t.Context()).Err())
				s.minis[0] = m
				m.Server().SetPreHook(func(peer *server.Peer, cmd string, _ ...string) bool {
					if cmd == "INFO" {
						c.says(peer)
					}
					return cmd == "INFO"
				})
				_, _, err := s.user().lock("l").LockAndGetToken(t.Context())
				locktest.IsError(t, err, quorum.ErrNoMajority)
				for _, want := range c.wants {
					if !strings.Contains(err.Error(), want) {
						t.Errorf("the error does not say %q: %v", want, err)
					}
				}
			})
		})
	}
}

// A lease that is short needs no other option: the nodes' time goes with it.
func TestShortLeases(t *testing.T) {
	virtual(t, 3, func(t *testing.T, s *site) {
		l := s.user(rlock.WithLease(190 * time.Millisecond)).lock("l")
		held, _, err := l.LockAndGetToken(t.Context())
		locktest.NoError(t, err)
		_ = l.Unlock(held) // on a busy machine it may be over: the lease is short in real time too
	})
}

// values is a client of the user's own that cannot be compared.
type values struct {
	redis.UniversalClient
	_ []string
}

func TestNodesOfOwnTypes(t *testing.T) {
	rdb := redis.NewClient(&redis.Options{})
	defer func() { _ = rdb.Close() }()
	_, err := quorum.New([]redis.UniversalClient{values{UniversalClient: rdb}, values{UniversalClient: rdb}})
	locktest.NoError(t, err)
}

// Nodes that are down when the client is made are told of once each, and once more when they are back.
func TestNodesDownAreLogged(t *testing.T) {
	virtual(t, 5, func(t *testing.T, s *site) {
		var lines locktest.Log
		u := s.user(withLog(&lines))
		u.down(1, 3)
		l := u.lock("l")
		for range 12 { // a message that repeats itself comes once in 10 s
			locktest.NoError(t, l.Do(t.Context(), func(context.Context, int64) error { return nil }))
			locktest.Sleep(time.Second)
		}
		locktest.Equal(t, "lines about nodes that fail", len(lines.With("a node fails")), 2)
		u.up()
		for range 12 {
			locktest.NoError(t, l.Do(t.Context(), func(context.Context, int64) error { return nil }))
			locktest.Sleep(time.Second)
		}
		locktest.Equal(t, "lines about nodes that are back", len(lines.With("a node answers again")), 2)
		s.restart(0)
		for range 12 {
			locktest.NoError(t, l.Do(t.Context(), func(context.Context, int64) error { return nil }))
			locktest.Sleep(time.Second)
		}
		locktest.Equal(t, "lines about nodes that do not count", len(lines.With("does not count yet")), 1)
		locktest.Equal(t, "lines", len(lines.With("")), 5)
	})
}

// An attempt that all nodes refused has left nothing, and nothing is sent after it.
func TestNothingIsSentAfterARefusal(t *testing.T) {
	virtual(t, 3, func(t *testing.T, s *site) {
		u := s.user(rlock.WithPatience(time.Second))
		var withdraws atomic.Int64
		u.down(0, 1)
		u.on(func(_ int, op string, _ []any, next func() error) error {
			switch op {
			case "vote":
				return errRefused
			case "withdraw":
				withdraws.Add(1)
			}
			return next()
		}, 2)
		_, _, err := u.lock("l").LockAndGetToken(t.Context())
		locktest.IsError(t, err, quorum.ErrNoMajority)
		locktest.Sleep(time.Minute)
		locktest.Equal(t, "releases", withdraws.Load(), 0)
		locktest.Equal(t, "records", quorum.Records(u.Client), 0)
	})
}
