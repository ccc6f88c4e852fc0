package rlock_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/realtime"
	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/fencelock/fencelock/rlock"
)

// realServer is a server process of the test's own, which is parallel to others.
func realServer(t *testing.T, args ...string) *redistest.Server {
	t.Helper()
	t.Parallel()
	return redistest.Real(t, args...)
}

// wantTold requires an error that is what Redis or the network said, and names the operation and the lock.
func wantTold(t *testing.T, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Fatal("no error")
	}
	if errors.Is(err, rlock.ErrNotAcquired) || errors.Is(err, rlock.ErrLost) || errors.Is(err, rlock.ErrNotHeld) {
		t.Fatalf("%v: nobody said that", err)
	}
	var e *rlock.Error
	if !errors.As(err, &e) || e.Op == "" || e.Lock == "" {
		t.Fatalf("%v (%T) names no operation and lock", err, err)
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Fatalf("%v: does not say %q", err, part)
		}
	}
}

func TestInv12_ConnectionRefused(t *testing.T) {
	realtime.Test(t, "calls that give up within a second")
	server := realServer(t)
	rdb := server.Client()
	server.Kill()
	const patience = time.Second
	l := rlock.NewLock(newClient(t, rdb, rlock.WithPatience(patience)), "a")
	began := time.Now()
	_, err := l.TryLock(t.Context(), 0, 0)
	wantTold(t, err, "refused")
	within(t, began, 2*time.Second, "one try")

	began = time.Now()
	_, err = l.TryLock(t.Context(), 300*time.Millisecond, 0)
	wantTold(t, err, "no answer") // go-redis tries to dial for half a second before it says what is wrong
	within(t, began, 300*time.Millisecond, "a try that waits")

	began = time.Now()
	_, err = l.Lock(t.Context())
	wantTold(t, err, "refused")
	within(t, began, patience+time.Second, "Lock")
	if time.Since(began) < patience/2 {
		t.Errorf("Lock gave up after %v", time.Since(began))
	}
	began = time.Now()
	locked := locktest.Start(func() error { _, err := l.IsLocked(t.Context()); return err })
	_, err = l.ForceUnlock(t.Context())
	wantTold(t, err)
	wantTold(t, redistest.Await(t, bound, locked, "IsLocked"))
	within(t, began, patience, "a question")
}

// Another way not to be there: the other side takes the connection and never says anything.
func TestInv12_SilentServer(t *testing.T) {
	realtime.Test(t, "calls that give up within a second")
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	locktest.NoError(t, err)
	defer func() { _ = silent.Close() }()
	rdb := redistest.Client(t, silent.Addr().String(), func(o *redis.Options) { o.ReadTimeout = 200 * time.Millisecond })
	l := rlock.NewLock(newClient(t, rdb, rlock.WithPatience(500*time.Millisecond)), "a")
	began := time.Now()
	_, err = l.TryLock(withTimeout(t, t.Context(), 100*time.Millisecond), 0, 0)
	locktest.IsError(t, err, context.DeadlineExceeded)
	within(t, began, 100*time.Millisecond, "a call whose context ends")
	began = time.Now()
	_, err = l.Lock(t.Context())
	wantTold(t, err)
	within(t, began, 2*time.Second, "Lock")
}

// Every call that asks Redis returns when its context ends, whatever Redis does.
func TestInv6_FrozenServer(t *testing.T) {
	server := realServer(t)
	c := newClient(t, server.Client())
	l := rlock.NewLock(c, "a")
	held, err := l.Lock(t.Context())
	locktest.NoError(t, err)
	other := rlock.NewLock(newClient(t, server.Client()), "a")
	fresh := rlock.NewLock(c, "b")
	server.Freeze()
	defer server.Thaw()
	calls := map[string]func(context.Context) error{
		"TryLock":          func(ctx context.Context) error { _, err := fresh.TryLock(ctx, 0, 0); return err },
		"TryLock, waiting": func(ctx context.Context) error { _, err := other.TryLock(ctx, time.Minute, 0); return err },
		"Lock":             func(ctx context.Context) error { _, err := other.Lock(ctx); return err },
		"LockLease":        func(ctx context.Context) error { _, err := fresh.LockLease(ctx, time.Minute); return err },
		"Do":               func(ctx context.Context) error { return other.Do(ctx, func(context.Context) error { return nil }) },
		"IsLocked":         func(ctx context.Context) error { _, err := l.IsLocked(ctx); return err },
		"TTL":              func(ctx context.Context) error { _, err := l.TTL(ctx); return err },
		"ForceUnlock":      func(ctx context.Context) error { _, err := l.ForceUnlock(ctx); return err },
	}
	for what, call := range calls {
		ctx := withTimeout(t, t.Context(), 100*time.Millisecond)
		began := time.Now()
		err := call(ctx)
		locktest.IsError(t, err, context.DeadlineExceeded)
		wantTold(t, err)
		within(t, began, 100*time.Millisecond, what)
	}
	for what, call := range map[string]func(context.Context) error{
		"re-entry":  func(ctx context.Context) error { _, err := l.Lock(ctx); return err },
		"HoldCount": func(ctx context.Context) error { _, err := l.HoldCount(ctx); return err },
		"IsHeld":    func(ctx context.Context) error { _, err := l.IsHeld(ctx); return err },
	} {
		ctx := withTimeout(t, held, 100*time.Millisecond)
		began := time.Now()
		locktest.IsError(t, call(ctx), context.DeadlineExceeded)
		within(t, began, 100*time.Millisecond, what)
	}
	cancelled, cancel := context.WithCancelCause(t.Context())
	why := errors.New("why")
	done := locktest.Start(func() error { _, err := other.Lock(cancelled); return err })
	cancel(why)
	err = redistest.Await(t, bound, done, "a cancelled call")
	locktest.IsError(t, err, context.Canceled)
	locktest.IsError(t, err, why)
}

// What was on its way to a frozen server, in whatever order it then runs it, leaves nothing behind.
func TestP3_ThawedServerKeepsNoGhosts(t *testing.T) {
	server := realServer(t)
	c := newClient(t, server.Client(func(o *redis.Options) { o.PoolSize = 50 }))
	const locks = 40
	direct := server.Client()
	locktest.NoError(t, direct.Ping(t.Context()).Err())
	held := make([]context.Context, locks)
	for i := range locks { // so that there are connections, and scripts
		var err error
		held[i], err = rlock.NewLock(c, fmt.Sprint("held-", i)).Lock(t.Context())
		locktest.NoError(t, err)
	}
	server.Freeze()
	began := time.Now()
	for round := range 3 {
		var calls []<-chan error
		for i := range locks {
			ctx := withTimeout(t, t.Context(), 100*time.Millisecond)
			calls = append(calls, locktest.Start(func() error {
				_, err := rlock.NewLock(c, fmt.Sprint("new-", round, "-", i)).TryLock(ctx, 0, 0)
				return err
			}))
		}
		for _, call := range calls {
			locktest.IsError(t, redistest.Await(t, bound, call, "a try"), context.DeadlineExceeded)
		}
	}
	within(t, began, time.Second, "120 tries of 100 ms, 40 at once")
	server.Thaw()
	began = time.Now()
	redistest.Eventually(t, 10*time.Second, func() bool {
		keys, err := direct.Keys(context.Background(), "new-*").Result()
		return err == nil && len(keys) == 0 && time.Since(began) > 200*time.Millisecond
	}, "the ghosts are released")
	for i := range locks {
		locktest.NoError(t, rlock.NewLock(c, fmt.Sprint("held-", i)).Unlock(held[i]))
	}
}

// The same after a freeze that is longer than a lease and what a read may take: the calls were given up long ago. No lease runs out.
func TestP3_ThawAfterMoreThanALease(t *testing.T) {
	server := realServer(t)
	const lease, tries = 15 * time.Second, 20
	c := newClient(t, server.Client(func(o *redis.Options) { o.ReadTimeout = 500 * time.Millisecond }), rlock.WithLease(lease))
	useOnce(t, c) // leaves few connections: what is sent after the calls comes on new ones, which get no further than to HELLO
	server.Freeze()
	var calls []<-chan error
	var names []string
	for i := range tries {
		l := rlock.NewLock(c, fmt.Sprint("new-", i))
		names = append(names, l.Name())
		ctx := withTimeout(t, t.Context(), time.Second)
		calls = append(calls, locktest.Start(func() error { _, err := l.Lock(ctx); return err }))
	}
	for _, call := range calls {
		locktest.IsError(t, redistest.Await(t, bound, call, "a call"), context.DeadlineExceeded)
	}
	time.Sleep(lease + 2*time.Second)
	server.Thaw()
	direct, began := server.Client(), time.Now()
	redistest.Eventually(t, bound, func() bool {
		left, err := direct.Exists(context.Background(), names...).Result()
		return err == nil && left == 0 && time.Since(began) > 200*time.Millisecond
	}, "the ghosts are gone")
	if stats := direct.Info(t.Context(), "stats").Val(); !strings.Contains(stats, "expired_keys:0\r\n") {
		t.Errorf("some have run out: %s", stats)
	}
}

func TestInv7_UnlockOfAFrozenServer(t *testing.T) {
	server := realServer(t)
	l := rlock.NewLock(newClient(t, server.Client(), rlock.WithUnlockTimeout(400*time.Millisecond)), "a")
	outer, err := l.Lock(t.Context())
	locktest.NoError(t, err)
	inner, err := l.Lock(outer)
	locktest.NoError(t, err)
	server.Freeze()
	began := time.Now()
	ended, cancel := context.WithCancel(inner)
	cancel() // a defer after a timeout
	wantTold(t, l.Unlock(ended))
	within(t, began, 400*time.Millisecond, "the inner Unlock")
	began = time.Now()
	wantTold(t, l.Unlock(outer))
	within(t, began, 400*time.Millisecond, "the last Unlock")
	server.Thaw()
	direct := server.Client()
	redistest.Eventually(t, 5*time.Second, func() bool { return direct.Exists(t.Context(), "a").Val() == 0 }, "it is released behind")
}

// The bound of Unlock is also what is left of the lease: after it there is nothing to release.
func TestInv7_UnlockTakesNoLongerThanTheLease(t *testing.T) {
	server := realServer(t)
	l := rlock.NewLock(newClient(t, server.Client()), "a")
	held, err := l.LockLease(t.Context(), time.Second)
	locktest.NoError(t, err)
	began := time.Now()
	server.Freeze()
	defer server.Thaw()
	if err := l.Unlock(held); err == nil {
		t.Error("Unlock says nil, and Redis said nothing")
	}
	within(t, began, time.Second, "Unlock")
}

func TestInv3_HoldEndsBeforeItsLeaseWithAFrozenServer(t *testing.T) {
	for what, take := range map[string]func(*rlock.Lock, context.Context) (context.Context, error){
		"renewed": (*rlock.Lock).Lock,
		"explicit": func(l *rlock.Lock, ctx context.Context) (context.Context, error) {
			return l.LockLease(ctx, 1500*time.Millisecond)
		},
	} {
		t.Run(what, func(t *testing.T) {
			const lease = 1500 * time.Millisecond
			server := realServer(t)
			var log locktest.Log
			l := rlock.NewLock(newClient(t, server.Client(), rlock.WithLease(lease), rlock.WithLogger(log.Logger())), "a")
			began := time.Now()
			held, err := take(l, t.Context())
			locktest.NoError(t, err)
			server.Freeze()
			froze := time.Now() // a renewal may have got through until here
			redistest.Await(t, bound, held.Done(), "the hold is over")
			over := time.Now()
			if took := over.Sub(froze); took > redistest.Bound(froze, lease) {
				t.Errorf("the context ended %v after the lease may have", took-lease)
			}
			if over.Sub(began) < lease/2 {
				t.Errorf("the context ended after %v, the lease is %v", over.Sub(began), lease)
			}
			locktest.IsError(t, held.Err(), rlock.ErrLost)
			locktest.IsError(t, held.Err(), context.Canceled)
			locktest.IsError(t, context.Cause(held), rlock.ErrLost)
			locktest.IsError(t, l.Check(context.WithoutCancel(held)), rlock.ErrLost)
			redistest.Eventually(t, bound, func() bool {
				return len(log.With("lock lost"))+len(log.With("a lease that is not renewed ran out")) == 1
			}, "the loss is logged")
			locktest.IsError(t, l.Unlock(held), rlock.ErrLost)
			server.Thaw()
			direct := server.Client()
			redistest.Eventually(t, 5*time.Second, func() bool { return direct.Exists(t.Context(), "a").Val() == 0 }, "nothing is left")
		})
	}
}

// A pause of Redis that is shorter than the lease is ridden out by the renewals.
func TestInv3_HoldOutlivesAShortFreeze(t *testing.T) {
	server := realServer(t)
	const lease = 6 * time.Second
	l := rlock.NewLock(newClient(t, server.Client(), rlock.WithLease(lease)), "a")
	began := time.Now()
	held, err := l.Lock(t.Context())
	locktest.NoError(t, err)
	server.Freeze()
	redistest.Eventually(t, bound, func() bool { return time.Since(began) > lease/3+300*time.Millisecond }, "a renewal hangs")
	server.Thaw()
	redistest.Eventually(t, bound, func() bool { return time.Since(began) > lease+200*time.Millisecond }, "the first lease is over")
	locktest.NoError(t, held.Err())
	locktest.NoError(t, l.Unlock(held))
}

func TestInv12_RestartIsRiddenOut(t *testing.T) {
	server := realServer(t)
	holder := rlock.NewLock(newClient(t, server.Client(), rlock.WithLease(12*time.Second)), "a")
	held, err := holder.Lock(t.Context())
	locktest.NoError(t, err)
	got := make(chan context.Context, 1)
	waiter := rlock.NewLock(newClient(t, server.Client(), rlock.WithPatience(failoverBound)), "a")
	done := locktest.Start(func() error {
		ctx, err := waiter.Lock(t.Context())
		got <- ctx
		return err
	})
	direct := server.Client()
	redistest.Eventually(t, bound, func() bool {
		select {
		case err := <-done:
			t.Fatalf("the other does not wait: %v", err)
		default:
		}
		n := direct.PubSubNumSub(t.Context(), "redisson_lock__channel:{a}").Val()
		return n["redisson_lock__channel:{a}"] == 1
	}, "the other waits")
	server.Kill()
	time.Sleep(300 * time.Millisecond)
	server.Restart()
	began := time.Now()
	locktest.NoError(t, redistest.Await(t, bound, done, "the waiter"))
	within(t, began, 3*time.Second, "getting the lock after the restart")
	// The data are gone, and with them the first hold: its renewal finds that out.
	redistest.Await(t, bound, held.Done(), "the hold is found lost")
	locktest.IsError(t, context.Cause(held), rlock.ErrLost)
	locktest.IsError(t, holder.Unlock(held), rlock.ErrLost)
	locktest.NoError(t, waiter.Unlock(<-got))
}

func TestInv12_RestartIsFoundByUnlock(t *testing.T) {
	server := realServer(t)
	l := rlock.NewLock(newClient(t, server.Client()), "a")
	held, err := l.Lock(t.Context())
	locktest.NoError(t, err)
	server.Restart()
	locktest.IsError(t, l.Unlock(held), rlock.ErrLost)
	locktest.IsError(t, held.Err(), rlock.ErrUnlocked)
}

func TestInv12_LOADINGIsRiddenOut(t *testing.T) {
	realtime.Test(t, "a server that loads for ten seconds")
	server := realServer(t, "--key-load-delay", "20000", "--rdbcompression", "no")
	rdb := server.Client()
	if err := rdb.ConfigSet(t.Context(), "loading-process-events-interval-bytes", "1024").Err(); err != nil {
		redistest.Lacks(t, "this server answers too rarely while it loads: %v", err)
	}
	c := newClient(t, server.Client(), rlock.WithPatience(time.Second))
	l := rlock.NewLock(newClient(t, server.Client()), "a")
	held, err := l.Lock(t.Context())
	locktest.NoError(t, err)
	pipe := rdb.Pipeline()
	for i := range 500 { // 20 ms each: 10 s
		pipe.Set(t.Context(), fmt.Sprint("filler-", i), strings.Repeat("x", 1024), 0)
	}
	_, err = pipe.Exec(t.Context())
	locktest.NoError(t, err)
	reloaded := locktest.Start(func() error {
		return server.Client(func(o *redis.Options) { o.ReadTimeout = time.Minute }).Do(context.Background(), "debug", "reload").Err()
	})
	redistest.Eventually(t, bound, func() bool {
		return redis.HasErrorPrefix(rdb.Get(t.Context(), "x").Err(), "LOADING")
	}, "Redis is loading")
	wantTold(t, answered(t, func() error { return lockOnly(rlock.NewLock(c, "b").TryLock(t.Context(), 0, 0)) }), "LOADING")
	_, err = rlock.NewLock(c, "b").Lock(t.Context())
	wantTold(t, err, "LOADING")
	patient := rlock.NewLock(newClient(t, server.Client(), rlock.WithPatience(time.Minute)), "b")
	next, err := patient.TryLock(t.Context(), time.Minute, 0)
	locktest.NoError(t, err)
	locktest.NoError(t, patient.Unlock(next))
	locktest.NoError(t, redistest.Await(t, bound, reloaded, "the reload"))
	locktest.NoError(t, held.Err())
	locktest.NoError(t, l.Unlock(held))
}

// P8: where an address leads to another master, and the one before lives on as its replica, renewals leave the connection to that one, whose
// reply is READONLY, before the lease is over: also where the client sends nothing else.
func TestP8_DemotedMasterIsLeft(t *testing.T) {
	realtime.Test(t, "a lease of 10 s")
	master, replica := realServer(t, "--repl-diskless-sync-delay", "0"), redistest.Real(t)
	m, r := master.Client(), replica.Client()
	var address atomic.Value
	address.Store(master.Addr())
	rdb := redistest.Client(t, "moving", func(o *redis.Options) {
		o.PoolSize = 2 * manyIdle
		o.Dialer = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", address.Load().(string))
		}
	})
	port := func(s *redistest.Server) string { return s.Addr()[len("127.0.0.1:"):] }
	locktest.NoError(t, r.Do(t.Context(), "replicaof", "127.0.0.1", port(master)).Err())
	redistest.Eventually(t, bound, func() bool {
		return strings.Contains(r.Info(t.Context(), "replication").Val(), "master_link_status:up")
	}, "the replica is there")
	const lease = 10 * time.Second
	held, err := rlock.NewLock(newClient(t, rdb, rlock.WithLease(lease)), "a").Lock(t.Context())
	locktest.NoError(t, err)
	redistest.LeaveIdle(t, rdb, manyIdle)
	redistest.Eventually(t, bound, func() bool { return r.Exists(t.Context(), "a").Val() == 1 }, "the replica has the lock")
	locktest.NoError(t, r.Do(t.Context(), "replicaof", "no", "one").Err())
	address.Store(replica.Addr())
	locktest.NoError(t, m.Do(t.Context(), "replicaof", "127.0.0.1", port(replica)).Err())
	left := r.PTTL(t.Context(), "a").Val()
	redistest.Eventually(t, 2*lease, func() bool {
		locktest.NoError(t, held.Err())
		before := left
		left = r.PTTL(t.Context(), "a").Val()
		return left > before
	}, "the lock is renewed on the new master")
	runtime.KeepAlive(held)
}

// manyIdle is more idle connections than there are attempts to renew a lease, one after the other.
const manyIdle = 30

// P8: the same where the server has ended the idle connections, and go-redis does not see that, as with TLS.
func TestP8_EndedConnectionsAreLeft(t *testing.T) {
	realtime.Test(t, "a lease of 10 s")
	server := realServer(t)
	rdb := redistest.Client(t, server.Addr(), func(o *redis.Options) { o.PoolSize, o.Dialer = 2*manyIdle, redistest.BlindDialer })
	const lease = 10 * time.Second
	held, err := rlock.NewLock(newClient(t, rdb, rlock.WithLease(lease)), "a").Lock(t.Context())
	locktest.NoError(t, err)
	redistest.LeaveIdle(t, rdb, manyIdle)
	locktest.NoError(t, server.Client().Do(t.Context(), "client", "kill", "type", "normal", "skipme", "yes").Err())
	left := server.Client().PTTL(t.Context(), "a").Val()
	redistest.Eventually(t, 2*lease, func() bool {
		locktest.NoError(t, held.Err())
		before := left
		left = server.Client().PTTL(t.Context(), "a").Val()
		return left > before
	}, "the lock is renewed")
	runtime.KeepAlive(held)
}

// A replica has the data and must not be believed: it answers READONLY to all of it. When it is promoted, all goes on.
func TestP8_ReplicaIsRiddenOutUntilItIsPromoted(t *testing.T) {
	realtime.Test(t, "a lease of 6 s, and a replica that takes over")
	master := realServer(t, "--repl-diskless-sync-delay", "0")
	replica := redistest.Real(t)
	m, r := master.Client(), replica.Client()
	var address atomic.Value
	address.Store(master.Addr())
	rdb := redistest.Client(t, "moving", func(o *redis.Options) {
		o.Dialer = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", address.Load().(string))
		}
	})
	locktest.NoError(t, r.Do(t.Context(), "replicaof", "127.0.0.1", master.Addr()[len("127.0.0.1:"):]).Err())
	redistest.Eventually(t, bound, func() bool {
		return strings.Contains(r.Info(t.Context(), "replication").Val(), "master_link_status:up")
	}, "the replica is there")

	const lease = 6 * time.Second
	l := fenced.NewLock(newClient(t, rdb, rlock.WithLease(lease)), "a")
	held, token, err := l.LockAndGetToken(t.Context())
	locktest.NoError(t, err)
	if n := m.Wait(t.Context(), 1, 5*time.Second).Val(); n != 1 {
		t.Fatal("the replica does not follow")
	}

	onReplica := newClient(t, replica.Client(), rlock.WithPatience(300*time.Millisecond))
	for what, ask := range map[string]func() error{
		"a try at a lock that is held there": func() error { _, err := rlock.NewLock(onReplica, "a").TryLock(t.Context(), 0, 0); return err },
		"a try at a lock that is free there": func() error { _, err := rlock.NewLock(onReplica, "b").TryLock(t.Context(), 0, 0); return err },
		"a wait":                             func() error { _, err := rlock.NewLock(onReplica, "a").Lock(t.Context()); return err },
		"IsLocked, of a lock that is held":   func() error { _, err := rlock.NewLock(onReplica, "a").IsLocked(t.Context()); return err },
		"IsLocked, of a lock that is free":   func() error { _, err := rlock.NewLock(onReplica, "b").IsLocked(t.Context()); return err },
		"ForceUnlock":                        func() error { _, err := rlock.NewLock(onReplica, "a").ForceUnlock(t.Context()); return err },
	} {
		redistest.Eventually(t, bound, func() bool { // a machine that is busy has no answer in 300 ms
			err := ask()
			if err == nil {
				t.Fatalf("%s: a replica was believed", what)
			}
			return strings.Contains(err.Error(), "READONLY")
		}, "%s: READONLY", what)
	}

	// A failover: the client meets the replica before it is promoted.
	address.Store(replica.Addr())
	master.Kill()
	patient := rlock.NewLock(newClient(t, replica.Client()), "b")
	var other context.Context
	waited := locktest.Start(func() (err error) { other, err = patient.Lock(t.Context()); return err })
	inner := make(chan context.Context, 1)
	reentered := locktest.Start(func() error { ctx, _, err := l.LockAndGetToken(held); inner <- ctx; return err })
	time.Sleep(200 * time.Millisecond) // for them to meet it; without it the test only sees less
	locktest.NoError(t, r.Do(t.Context(), "replicaof", "no", "one").Err())
	locktest.NoError(t, redistest.Await(t, bound, waited, "the waiter"))
	locktest.NoError(t, patient.Unlock(other))
	locktest.NoError(t, redistest.Await(t, bound, reentered, "the re-entry"))
	if now, err := l.Token(held); err != nil || now != token+1 {
		t.Errorf("the token is %d, %v; want %d", now, err, token+1)
	}
	locktest.NoError(t, l.Unlock(<-inner))
	locktest.NoError(t, held.Err())
	locktest.NoError(t, l.Unlock(held))
	if n := r.Exists(t.Context(), "a", "b").Val(); n != 0 {
		t.Error("a lock is left")
	}
}

func TestP8_OutOfMemory(t *testing.T) {
	realtime.Test(t, "a lease of 3 s")
	server := realServer(t)
	direct := server.Client()
	const lease = 3 * time.Second
	c := newClient(t, server.Client(), rlock.WithLease(lease))
	l := fenced.NewLock(c, "a")
	began := time.Now()
	outer, _, err := l.LockAndGetToken(t.Context())
	locktest.NoError(t, err)
	inner, _, err := l.LockAndGetToken(outer)
	locktest.NoError(t, err)
	full := func(limit string) {
		t.Helper()
		locktest.NoError(t, direct.ConfigSet(t.Context(), "maxmemory", limit).Err())
	}
	full("1")
	// Each is of a client of its own: the release behind a refused acquire is a write that Redis allows, and what comes
	// after a write in the same script is allowed too.
	for what, take := range map[string]func(c *rlock.Client) error{
		"fenced": func(c *rlock.Client) error {
			_, _, err := fenced.NewLock(c, "b").LockAndGetToken(t.Context())
			return err
		},
		"plain": func(c *rlock.Client) error {
			_, err := rlock.NewLock(c, "c").TryLock(t.Context(), time.Minute, 0)
			return err
		},
	} {
		other := newClient(t, server.Client())
		at := time.Now()
		err := take(other)
		wantTold(t, err, "OOM", "maxmemory")
		within(t, at, 0, "a lock that memory refuses, "+what)
	}
	if n := direct.Exists(t.Context(), "b", "c", "redisson_lock_token:{b}").Val(); n != 0 {
		t.Error("a refused acquire left a key")
	}
	_, _, err = l.LockAndGetToken(inner)
	wantTold(t, err, "OOM")
	// What is held goes on, and can be given back.
	redistest.Eventually(t, bound, func() bool { return time.Since(began) > 2*lease }, "several renewals")
	locktest.NoError(t, inner.Err())
	locktest.NoError(t, l.Unlock(inner))
	if n, err := l.HoldCount(outer); n != 1 || err != nil {
		t.Errorf("the count is %d, %v", n, err)
	}
	locktest.NoError(t, outer.Err())
	locktest.NoError(t, l.Unlock(outer))
	if direct.Exists(t.Context(), "a").Val() != 0 {
		t.Error("the lock is left")
	}
	full("0")
	next, token, err := l.LockAndGetToken(t.Context())
	locktest.NoError(t, err)
	if token < 3 {
		t.Errorf("token %d is not a new one", token)
	}
	locktest.NoError(t, l.Unlock(next))
}

func TestInv12_WrongTypes(t *testing.T) {
	s := newSite(t)
	l := fenced.NewLock(s.other(), "a")
	ctx := t.Context()
	locktest.NoError(t, s.direct.Set(ctx, "a", "x", 0).Err())
	began := time.Now()
	_, _, err := l.LockAndGetToken(ctx)
	wantTold(t, err, "WRONGTYPE", "choose a name")
	wantTold(t, answered(t, func() error { return lockOnly(locktest.NoToken(l.TryLockAndGetToken(ctx, 0, 0))) }), "WRONGTYPE")
	within(t, began, 0, "what stays wrong")
	if s.direct.Get(ctx, "a").Val() != "x" {
		t.Error("somebody's data are gone")
	}
	locktest.NoError(t, s.direct.Del(ctx, "a").Err())

	for _, counter := range []string{"many", "9007199254740993"} {
		locktest.NoError(t, s.direct.Set(ctx, "redisson_lock_token:{a}", counter, 0).Err())
		began = time.Now()
		_, _, err = l.LockAndGetToken(ctx)
		wantTold(t, err, "counter")
		within(t, began, 0, "what stays wrong")
		s.wantCount("a", "")
	}
	// A re-entry that meets it leaves the hold as it was.
	locktest.NoError(t, s.direct.Del(ctx, "redisson_lock_token:{a}").Err())
	held := takeToken(t, l, ctx, 1)
	locktest.NoError(t, s.direct.Set(ctx, "redisson_lock_token:{a}", "many", 0).Err())
	_, _, err = l.LockAndGetToken(held)
	wantTold(t, err, "counter")
	locktest.NoError(t, l.Check(held))
	redistest.Eventually(t, bound, func() bool { return s.count("a") == "1" }, "the count is right")
	locktest.NoError(t, l.Unlock(held))
	s.wantCount("a", "")
}

func TestInv5_ScriptFlushInTheMiddle(t *testing.T) {
	s := newSite(t)
	l := fenced.NewLock(s.client(rlock.WithLease(9*time.Second), rlock.WithUnlockTimeout(bound)), "a")
	flush := func() {
		t.Helper()
		locktest.NoError(t, s.direct.ScriptFlush(t.Context()).Err())
	}
	flush()
	outer := takeToken(t, l, t.Context(), 1)
	flush()
	inner := takeToken(t, l, outer, 2)
	flush()
	renewed := s.proxy.On("a renewal by text", redistest.And(redistest.Command("eval"), locktest.CallsOf("renew")), redistest.Duplicate)
	redistest.Await(t, bound, renewed.Fired(), "the lease is renewed")
	flush()
	locktest.NoError(t, l.Unlock(inner))
	flush()
	// the reply of the EVAL is lost
	lost := s.proxy.On("the release by text", redistest.And(redistest.Command("eval"), locktest.CallsOf("unlock")), redistest.SwallowReply)
	locktest.NoError(t, l.Unlock(outer))
	redistest.Await(t, bound, lost.Fired(), "the reply is lost")
	s.wantCount("a", "")
	s.wantCounter("a", "2")
}

// newUser is a client as a user with these rights.
func newUser(t *testing.T, server *redistest.Server, rights ...any) *redis.Client {
	t.Helper()
	args := append([]any{"acl", "setuser", "limited", "on", ">secret"}, rights...)
	locktest.NoError(t, server.Client().Do(t.Context(), args...).Err())
	return server.Client(func(o *redis.Options) { o.Username, o.Password = "limited", "secret" })
}

func TestP10_UserWhoMayNotSubscribePolls(t *testing.T) {
	for what, rights := range map[string][]any{
		"no command":  {"~*", "&*", "+@all", "-subscribe", "-psubscribe"},
		"no channels": {"~*", "resetchannels", "+@all"},
	} {
		t.Run(what, func(t *testing.T) {
			server := realServer(t)
			rdb := newUser(t, server, rights...)
			var log locktest.Log
			const poll = 200 * time.Millisecond
			l := rlock.NewLock(newClient(t, rdb, rlock.WithPollInterval(poll), rlock.WithLogger(log.Logger())), "a")
			other := rlock.NewLock(newClient(t, server.Client()), "a")
			for range 3 {
				held, err := other.Lock(t.Context())
				locktest.NoError(t, err)
				var mine context.Context
				done := locktest.Start(func() (err error) { mine, err = l.TryLock(t.Context(), 10*time.Second, 0); return err })
				redistest.Eventually(t, bound, func() bool { return len(log.With("NOPERM")) > 0 }, "the refusal is logged")
				locktest.NoError(t, other.Unlock(held))
				began := time.Now()
				locktest.NoError(t, redistest.Await(t, bound, done, "the waiter"))
				within(t, began, poll, "the wait for a free lock")
				locktest.NoError(t, l.Unlock(mine))
			}
			if all := log.With("pubsub:"); len(all) != 1 || !strings.Contains(all[0], "poll") {
				t.Errorf("logged: %q", all)
			}
		})
	}
}

func TestP10_UserWhoMayNotPublishUnlocks(t *testing.T) {
	for what, rights := range map[string][]any{
		"no command":  {"~*", "&*", "+@all", "-publish"},
		"no channels": {"~*", "resetchannels", "+@all"},
	} {
		t.Run(what, func(t *testing.T) {
			server := realServer(t)
			var log locktest.Log
			c := newClient(t, newUser(t, server, rights...), rlock.WithLogger(log.Logger()))
			l := fenced.NewLock(c, "a")
			for token := range int64(3) {
				outer := takeToken(t, l, t.Context(), 2*token+1)
				inner := takeToken(t, l, outer, 2*token+2)
				locktest.NoError(t, l.Unlock(inner))
				locktest.NoError(t, l.Unlock(outer))
				if n := server.Client().Exists(t.Context(), "a").Val(); n != 0 {
					t.Fatal("the lock is left")
				}
			}
			// It is done, but waiters come late: that is said once, and counted.
			redistest.Eventually(t, bound, func() bool { return len(log.With("needs PUBLISH")) > 0 }, "the log says what right is missing")
			if all := log.With(""); len(all) != 1 || !strings.Contains(all[0], "redisson_lock__channel:{a}") {
				t.Errorf("logged: %q", all)
			}
			if n := c.Unpublished(); n != 3 {
				t.Errorf("%d releases of which nobody was told, want 3", n)
			}
		})
	}
}

func TestInv12_UserWithoutRightsIsTold(t *testing.T) {
	server := realServer(t)
	for what, rights := range map[string][]any{
		"no scripts":     {"reset", "on", ">secret", "~*", "&*", "+@all", "-@scripting"},
		"no such keys":   {"reset", "on", ">secret", "~other:*", "&*", "+@all"},
		"a command less": {"reset", "on", ">secret", "~*", "&*", "+@all", "-hincrby"},
	} {
		l := fenced.NewLock(newClient(t, newUser(t, server, rights...)), "a")
		began := time.Now()
		_, _, err := l.LockAndGetToken(t.Context())
		if err == nil {
			t.Errorf("%s: no error", what)
			continue
		}
		wantTold(t, err)
		t.Logf("%s: %v", what, err)
		within(t, began, 0, what)
	}
	if n := server.Client().Exists(t.Context(), "a").Val(); n != 0 {
		t.Error("a lock without a holder is left")
	}
}

func TestInv12_WrongPasswordIsNotRiddenOut(t *testing.T) {
	server := realServer(t, "--requirepass", "secret")
	for password, says := range map[string]string{"wrong": "WRONGPASS", "": "NOAUTH"} {
		l := rlock.NewLock(newClient(t, server.Client(func(o *redis.Options) { o.Password = password })), "a")
		began := time.Now()
		_, err := l.Lock(t.Context())
		wantTold(t, err, says)
		_, err = l.TryLock(t.Context(), time.Minute, 0)
		wantTold(t, err, says)
		within(t, began, 0, "a wrong password")
	}
}

func TestP13_ExhaustedPool(t *testing.T) {
	realtime.Test(t, "calls that give up within 100 ms")
	s := newSite(t)
	rdb := redistest.Client(t, s.addr, func(o *redis.Options) {
		o.PoolSize, o.PoolTimeout = 1, 200*time.Millisecond
	})
	blocked := rdb.Conn() // the only connection is taken
	locktest.NoError(t, blocked.Ping(t.Context()).Err())
	l := rlock.NewLock(newClient(t, rdb), "a")
	began := time.Now()
	_, err := l.TryLock(withTimeout(t, t.Context(), 100*time.Millisecond), 0, 0)
	locktest.IsError(t, err, context.DeadlineExceeded)
	within(t, began, 100*time.Millisecond, "a call whose context ends")
	began = time.Now()
	_, err = l.TryLock(t.Context(), 0, 0)
	wantTold(t, err, "pool")
	within(t, began, 2*time.Second, "one try")
	var held context.Context
	done := locktest.Start(func() (err error) { held, err = l.Lock(t.Context()); return err })
	select {
	case err := <-done:
		t.Fatalf("got %v without a connection", err)
	case <-time.After(600 * time.Millisecond):
	}
	locktest.NoError(t, blocked.Close())
	locktest.NoError(t, redistest.Await(t, bound, done, "the lock"))
	locktest.NoError(t, l.Unlock(held))
	s.wantCount("a", "")
}

// Close ends what waits for a server that does not answer.
func TestInv12_CloseWithAFrozenServer(t *testing.T) {
	server := realServer(t)
	c := newClient(t, server.Client())
	l := rlock.NewLock(c, "a")
	held, err := l.Lock(t.Context())
	locktest.NoError(t, err)
	server.Freeze()
	defer server.Thaw()
	var waiters []<-chan error
	for range 5 {
		waiters = append(waiters, locktest.Start(func() error { _, err := l.Lock(t.Context()); return err }))
	}
	time.Sleep(100 * time.Millisecond) // for them to wait; without it the test only sees less
	began := time.Now()
	locktest.NoError(t, c.Close())
	within(t, began, 0, "Close")
	for _, w := range waiters {
		locktest.IsError(t, redistest.Await(t, bound, w, "a waiter"), rlock.ErrClosed)
	}
	within(t, began, 0, "the waiters")
	locktest.IsError(t, context.Cause(held), rlock.ErrClosed)
}
