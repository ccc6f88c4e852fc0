package rlock_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/internal/redistest"
	"github.com/fencelock/fencelock/rlock"
)

// faultReal is a server process of the test's own, which is parallel to others.
func faultReal(t *testing.T, args ...string) *redistest.Server {
	t.Helper()
	t.Parallel()
	return redistest.Real(t, args...)
}

// faultTold requires an error that is what Redis or the network said, and names the operation and the lock.
func faultTold(t *testing.T, err error, parts ...string) {
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
	server := faultReal(t)
	rdb := server.Client()
	server.Kill()
	const patience = time.Second
	l := rlock.NewLock(faultClient(t, rdb, rlock.WithPatience(patience)), "a")
	began := time.Now()
	_, err := l.TryLock(t.Context(), 0, 0)
	faultTold(t, err, "refused")
	faultWithin(t, began, 2*time.Second, "one try")

	began = time.Now()
	_, err = l.TryLock(t.Context(), 300*time.Millisecond, 0)
	faultTold(t, err, "no answer") // go-redis tries to dial for half a second before it says what is wrong
	faultWithin(t, began, 300*time.Millisecond, "a try that waits")

	began = time.Now()
	_, err = l.Lock(t.Context())
	faultTold(t, err, "refused")
	faultWithin(t, began, patience+time.Second, "Lock")
	if time.Since(began) < patience/2 {
		t.Errorf("Lock gave up after %v", time.Since(began))
	}
	began = time.Now()
	locked := faultGo(func() error { _, err := l.IsLocked(t.Context()); return err })
	_, err = l.ForceUnlock(t.Context())
	faultTold(t, err)
	faultTold(t, faultGet(t, locked, "IsLocked"))
	faultWithin(t, began, patience, "a question")
}

// Another way not to be there: the other side takes the connection and never says anything.
func TestInv12_SilentServer(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	faultNo(t, err)
	defer func() { _ = silent.Close() }()
	rdb := redistest.Client(t, silent.Addr().String(), func(o *redis.Options) { o.ReadTimeout = 200 * time.Millisecond })
	l := rlock.NewLock(faultClient(t, rdb, rlock.WithPatience(500*time.Millisecond)), "a")
	began := time.Now()
	_, err = l.TryLock(faultTimeout(t, t.Context(), 100*time.Millisecond), 0, 0)
	faultIs(t, err, context.DeadlineExceeded)
	faultWithin(t, began, 100*time.Millisecond, "a call whose context ends")
	began = time.Now()
	_, err = l.Lock(t.Context())
	faultTold(t, err)
	faultWithin(t, began, 2*time.Second, "Lock")
}

// Every call that asks Redis returns when its context ends, whatever Redis does.
func TestInv6_FrozenServer(t *testing.T) {
	server := faultReal(t)
	c := faultClient(t, server.Client())
	l := rlock.NewLock(c, "a")
	held, err := l.Lock(t.Context())
	faultNo(t, err)
	other := rlock.NewLock(faultClient(t, server.Client()), "a")
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
		"RemainTTL":        func(ctx context.Context) error { _, err := l.RemainTTL(ctx); return err },
		"ForceUnlock":      func(ctx context.Context) error { _, err := l.ForceUnlock(ctx); return err },
	}
	for what, call := range calls {
		ctx := faultTimeout(t, t.Context(), 100*time.Millisecond)
		began := time.Now()
		err := call(ctx)
		faultIs(t, err, context.DeadlineExceeded)
		faultTold(t, err)
		faultWithin(t, began, 100*time.Millisecond, what)
	}
	for what, call := range map[string]func(context.Context) error{
		"re-entry":  func(ctx context.Context) error { _, err := l.Lock(ctx); return err },
		"HoldCount": func(ctx context.Context) error { _, err := l.HoldCount(ctx); return err },
		"IsHeld":    func(ctx context.Context) error { _, err := l.IsHeld(ctx); return err },
	} {
		ctx := faultTimeout(t, held, 100*time.Millisecond)
		began := time.Now()
		faultIs(t, call(ctx), context.DeadlineExceeded)
		faultWithin(t, began, 100*time.Millisecond, what)
	}
	cancelled, cancel := context.WithCancelCause(t.Context())
	why := errors.New("why")
	done := faultGo(func() error { _, err := other.Lock(cancelled); return err })
	cancel(why)
	err = faultGet(t, done, "a cancelled call")
	faultIs(t, err, context.Canceled)
	faultIs(t, err, why)
}

// What was on its way to a frozen server, in whatever order it then runs it, leaves nothing behind.
func TestP3_ThawedServerKeepsNoGhosts(t *testing.T) {
	server := faultReal(t)
	c := faultClient(t, server.Client(func(o *redis.Options) { o.PoolSize = 50 }))
	const locks = 40
	direct := server.Client()
	faultNo(t, direct.Ping(t.Context()).Err())
	held := make([]context.Context, locks)
	for i := range locks { // so that there are connections, and scripts
		var err error
		held[i], err = rlock.NewLock(c, fmt.Sprint("held-", i)).Lock(t.Context())
		faultNo(t, err)
	}
	server.Freeze()
	began := time.Now()
	for round := range 3 {
		var calls []<-chan error
		for i := range locks {
			ctx := faultTimeout(t, t.Context(), 100*time.Millisecond)
			calls = append(calls, faultGo(func() error {
				_, err := rlock.NewLock(c, fmt.Sprint("new-", round, "-", i)).TryLock(ctx, 0, 0)
				return err
			}))
		}
		for _, call := range calls {
			faultIs(t, faultGet(t, call, "a try"), context.DeadlineExceeded)
		}
	}
	faultWithin(t, began, time.Second, "120 tries of 100 ms, 40 at once")
	server.Thaw()
	began = time.Now()
	redistest.Eventually(t, 10*time.Second, func() bool {
		keys, err := direct.Keys(context.Background(), "new-*").Result()
		return err == nil && len(keys) == 0 && time.Since(began) > 200*time.Millisecond
	}, "the ghosts are released")
	for i := range locks {
		faultNo(t, rlock.NewLock(c, fmt.Sprint("held-", i)).Unlock(held[i]))
	}
}

func TestInv7_UnlockOfAFrozenServer(t *testing.T) {
	server := faultReal(t)
	l := rlock.NewLock(faultClient(t, server.Client(), rlock.WithUnlockTimeout(400*time.Millisecond)), "a")
	outer, err := l.Lock(t.Context())
	faultNo(t, err)
	inner, err := l.Lock(outer)
	faultNo(t, err)
	server.Freeze()
	began := time.Now()
	ended, cancel := context.WithCancel(inner)
	cancel() // a defer after a timeout
	faultTold(t, l.Unlock(ended))
	faultWithin(t, began, 400*time.Millisecond, "the inner Unlock")
	began = time.Now()
	faultTold(t, l.Unlock(outer))
	faultWithin(t, began, 400*time.Millisecond, "the last Unlock")
	server.Thaw()
	direct := server.Client()
	redistest.Eventually(t, 5*time.Second, func() bool { return direct.Exists(t.Context(), "a").Val() == 0 }, "it is released behind")
}

// The bound of Unlock is also what is left of the lease: after it there is nothing to release.
func TestInv7_UnlockTakesNoLongerThanTheLease(t *testing.T) {
	server := faultReal(t)
	l := rlock.NewLock(faultClient(t, server.Client()), "a")
	held, err := l.LockLease(t.Context(), time.Second)
	faultNo(t, err)
	began := time.Now()
	server.Freeze()
	defer server.Thaw()
	if err := l.Unlock(held); err == nil {
		t.Error("Unlock says nil, and Redis said nothing")
	}
	faultWithin(t, began, time.Second, "Unlock")
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
			server := faultReal(t)
			var log faultLog
			l := rlock.NewLock(faultClient(t, server.Client(), rlock.WithLease(lease), log.option()), "a")
			began := time.Now()
			held, err := take(l, t.Context())
			faultNo(t, err)
			server.Freeze()
			froze := time.Now() // a renewal may have got through until here
			faultAwait(t, held.Done(), "the hold is over")
			over := time.Now()
			if took := over.Sub(froze); took > redistest.Bound(froze, lease) {
				t.Errorf("the context ended %v after the lease may have", took-lease)
			}
			if over.Sub(began) < lease/2 {
				t.Errorf("the context ended after %v, the lease is %v", over.Sub(began), lease)
			}
			faultIs(t, held.Err(), rlock.ErrLost)
			faultIs(t, held.Err(), context.Canceled)
			faultIs(t, context.Cause(held), rlock.ErrLost)
			faultIs(t, l.Check(context.WithoutCancel(held)), rlock.ErrLost)
			redistest.Eventually(t, faultBound, func() bool { return len(log.With("lock lost")) == 1 }, "the loss is logged")
			faultIs(t, l.Unlock(held), rlock.ErrLost)
			server.Thaw()
			direct := server.Client()
			redistest.Eventually(t, 5*time.Second, func() bool { return direct.Exists(t.Context(), "a").Val() == 0 }, "nothing is left")
		})
	}
}

// A pause of Redis that is shorter than the lease is ridden out by the renewals.
func TestInv3_HoldOutlivesAShortFreeze(t *testing.T) {
	server := faultReal(t)
	const lease = 6 * time.Second
	l := rlock.NewLock(faultClient(t, server.Client(), rlock.WithLease(lease)), "a")
	began := time.Now()
	held, err := l.Lock(t.Context())
	faultNo(t, err)
	server.Freeze()
	redistest.Eventually(t, faultBound, func() bool { return time.Since(began) > lease/3+300*time.Millisecond }, "a renewal hangs")
	server.Thaw()
	redistest.Eventually(t, faultBound, func() bool { return time.Since(began) > lease+200*time.Millisecond }, "the first lease is over")
	faultNo(t, held.Err())
	faultNo(t, l.Unlock(held))
}

func TestInv12_RestartIsRiddenOut(t *testing.T) {
	server := faultReal(t)
	holder := rlock.NewLock(faultClient(t, server.Client(), rlock.WithLease(3*time.Second)), "a")
	held, err := holder.Lock(t.Context())
	faultNo(t, err)
	got := make(chan context.Context, 1)
	waiter := rlock.NewLock(faultClient(t, server.Client()), "a")
	done := faultGo(func() error {
		ctx, err := waiter.Lock(t.Context())
		got <- ctx
		return err
	})
	direct := server.Client()
	redistest.Eventually(t, faultBound, func() bool {
		n := direct.PubSubNumSub(t.Context(), "redisson_lock__channel:{a}").Val()
		return n["redisson_lock__channel:{a}"] == 1
	}, "the other waits")
	server.Kill()
	time.Sleep(300 * time.Millisecond)
	server.Restart()
	began := time.Now()
	faultNo(t, faultGet(t, done, "the waiter"))
	faultWithin(t, began, 3*time.Second, "getting the lock after the restart")
	// The data are gone, and with them the first hold: its renewal finds that out.
	faultAwait(t, held.Done(), "the hold is found lost")
	faultIs(t, context.Cause(held), rlock.ErrLost)
	faultIs(t, holder.Unlock(held), rlock.ErrLost)
	faultNo(t, waiter.Unlock(<-got))
}

func TestInv12_RestartIsFoundByUnlock(t *testing.T) {
	server := faultReal(t)
	l := rlock.NewLock(faultClient(t, server.Client()), "a")
	held, err := l.Lock(t.Context())
	faultNo(t, err)
	server.Restart()
	faultIs(t, l.Unlock(held), rlock.ErrLost)
	faultIs(t, held.Err(), rlock.ErrUnlocked)
}

func TestInv12_LOADINGIsRiddenOut(t *testing.T) {
	server := faultReal(t, "--key-load-delay", "20000", "--rdbcompression", "no")
	rdb := server.Client()
	if err := rdb.ConfigSet(t.Context(), "loading-process-events-interval-bytes", "1024").Err(); err != nil {
		redistest.Lacks(t, "this server answers too rarely while it loads: %v", err)
	}
	const lease = 20 * time.Second
	c := faultClient(t, server.Client(), rlock.WithLease(lease), rlock.WithPatience(300*time.Millisecond))
	l := rlock.NewLock(c, "a")
	held, err := l.Lock(t.Context())
	faultNo(t, err)
	pipe := rdb.Pipeline()
	for i := range 300 { // 20 ms each: 6 s
		pipe.Set(t.Context(), fmt.Sprint("filler-", i), strings.Repeat("x", 1024), 0)
	}
	_, err = pipe.Exec(t.Context())
	faultNo(t, err)
	reloaded := faultGo(func() error {
		return server.Client(func(o *redis.Options) { o.ReadTimeout = time.Minute }).Do(context.Background(), "debug", "reload").Err()
	})
	redistest.Eventually(t, faultBound, func() bool {
		return redis.HasErrorPrefix(rdb.Get(t.Context(), "x").Err(), "LOADING")
	}, "Redis is loading")
	_, err = rlock.NewLock(c, "b").TryLock(t.Context(), 0, 0)
	faultTold(t, err, "LOADING")
	_, err = rlock.NewLock(c, "b").Lock(t.Context())
	faultTold(t, err, "LOADING")
	patient := rlock.NewLock(faultClient(t, server.Client()), "b")
	next, err := patient.TryLock(t.Context(), time.Minute, 0)
	faultNo(t, err)
	faultNo(t, patient.Unlock(next))
	faultNo(t, faultGet(t, reloaded, "the reload"))
	faultNo(t, held.Err())
	faultNo(t, l.Unlock(held))
}

// A replica has the data and must not be believed: it answers READONLY to all of it. When it is promoted, all goes on.
func TestP8_ReplicaIsRiddenOutUntilItIsPromoted(t *testing.T) {
	master := faultReal(t, "--repl-diskless-sync-delay", "0")
	replica := redistest.Real(t)
	m, r := master.Client(), replica.Client()
	var address atomic.Value
	address.Store(master.Addr())
	rdb := redistest.Client(t, "moving", func(o *redis.Options) {
		o.Dialer = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", address.Load().(string))
		}
	})
	faultNo(t, r.Do(t.Context(), "replicaof", "127.0.0.1", master.Addr()[len("127.0.0.1:"):]).Err())
	redistest.Eventually(t, faultBound, func() bool {
		return strings.Contains(r.Info(t.Context(), "replication").Val(), "master_link_status:up")
	}, "the replica is there")

	const lease = 6 * time.Second
	l := fenced.NewLock(faultClient(t, rdb, rlock.WithLease(lease)), "a")
	held, token, err := l.LockAndGetToken(t.Context())
	faultNo(t, err)
	if n := m.Wait(t.Context(), 1, 5*time.Second).Val(); n != 1 {
		t.Fatal("the replica does not follow")
	}

	onReplica := faultClient(t, replica.Client(), rlock.WithPatience(300*time.Millisecond))
	for what, ask := range map[string]func() error{
		"a try at a lock that is held there": func() error { _, err := rlock.NewLock(onReplica, "a").TryLock(t.Context(), 0, 0); return err },
		"a try at a lock that is free there": func() error { _, err := rlock.NewLock(onReplica, "b").TryLock(t.Context(), 0, 0); return err },
		"a wait":                             func() error { _, err := rlock.NewLock(onReplica, "a").Lock(t.Context()); return err },
		"IsLocked, of a lock that is held":   func() error { _, err := rlock.NewLock(onReplica, "a").IsLocked(t.Context()); return err },
		"IsLocked, of a lock that is free":   func() error { _, err := rlock.NewLock(onReplica, "b").IsLocked(t.Context()); return err },
		"ForceUnlock":                        func() error { _, err := rlock.NewLock(onReplica, "a").ForceUnlock(t.Context()); return err },
	} {
		if err := ask(); err == nil || !strings.Contains(err.Error(), "READONLY") {
			t.Errorf("%s: %v", what, err)
		}
	}

	// A failover: the client meets the replica before it is promoted.
	address.Store(replica.Addr())
	master.Kill()
	patient := rlock.NewLock(faultClient(t, replica.Client()), "b")
	var other context.Context
	waited := faultGo(func() (err error) { other, err = patient.Lock(t.Context()); return err })
	inner := make(chan context.Context, 1)
	reentered := faultGo(func() error { ctx, err := l.Lock(held); inner <- ctx; return err })
	time.Sleep(200 * time.Millisecond) // for them to meet it; without it the test only sees less
	faultNo(t, r.Do(t.Context(), "replicaof", "no", "one").Err())
	faultNo(t, faultGet(t, waited, "the waiter"))
	faultNo(t, patient.Unlock(other))
	faultNo(t, faultGet(t, reentered, "the re-entry"))
	if now, err := l.Token(held); err != nil || now != token+1 {
		t.Errorf("the token is %d, %v; want %d", now, err, token+1)
	}
	faultNo(t, l.Unlock(<-inner))
	faultNo(t, held.Err())
	faultNo(t, l.Unlock(held))
	if n := r.Exists(t.Context(), "a", "b").Val(); n != 0 {
		t.Error("a lock is left")
	}
}

func TestP8_OutOfMemory(t *testing.T) {
	server := faultReal(t)
	direct := server.Client()
	const lease = 3 * time.Second
	c := faultClient(t, server.Client(), rlock.WithLease(lease))
	l := fenced.NewLock(c, "a")
	began := time.Now()
	outer, err := l.Lock(t.Context())
	faultNo(t, err)
	inner, err := l.Lock(outer)
	faultNo(t, err)
	full := func(limit string) {
		t.Helper()
		faultNo(t, direct.ConfigSet(t.Context(), "maxmemory", limit).Err())
	}
	full("1")
	for what, take := range map[string]func() error{
		"fenced": func() error { _, err := fenced.NewLock(c, "b").Lock(t.Context()); return err },
		"plain":  func() error { _, err := rlock.NewLock(c, "c").TryLock(t.Context(), time.Minute, 0); return err },
	} {
		at := time.Now()
		err := take()
		faultTold(t, err, "OOM", "maxmemory")
		faultWithin(t, at, 0, "a lock that memory refuses, "+what)
	}
	if n := direct.Exists(t.Context(), "b", "c", "redisson_lock_token:{b}").Val(); n != 0 {
		t.Error("a refused acquire left a key")
	}
	_, err = l.Lock(inner)
	faultTold(t, err, "OOM")
	// What is held goes on, and can be given back.
	redistest.Eventually(t, faultBound, func() bool { return time.Since(began) > 2*lease }, "several renewals")
	faultNo(t, inner.Err())
	faultNo(t, l.Unlock(inner))
	if n, err := l.HoldCount(outer); n != 1 || err != nil {
		t.Errorf("the count is %d, %v", n, err)
	}
	faultNo(t, outer.Err())
	faultNo(t, l.Unlock(outer))
	if direct.Exists(t.Context(), "a").Val() != 0 {
		t.Error("the lock is left")
	}
	full("0")
	next, token, err := l.LockAndGetToken(t.Context())
	faultNo(t, err)
	if token < 3 {
		t.Errorf("token %d is not a new one", token)
	}
	faultNo(t, l.Unlock(next))
}

func TestInv12_WrongTypes(t *testing.T) {
	s := faultNew(t)
	l := fenced.NewLock(s.other(), "a")
	ctx := t.Context()
	faultNo(t, s.direct.Set(ctx, "a", "x", 0).Err())
	began := time.Now()
	_, err := l.Lock(ctx)
	faultTold(t, err, "WRONGTYPE", "choose a name")
	_, err = l.TryLock(ctx, 0, 0)
	faultTold(t, err, "WRONGTYPE")
	faultWithin(t, began, 0, "what stays wrong")
	if s.direct.Get(ctx, "a").Val() != "x" {
		t.Error("somebody's data are gone")
	}
	faultNo(t, s.direct.Del(ctx, "a").Err())

	for _, counter := range []string{"many", "9007199254740993"} {
		faultNo(t, s.direct.Set(ctx, "redisson_lock_token:{a}", counter, 0).Err())
		began = time.Now()
		_, err = l.Lock(ctx)
		faultTold(t, err, "counter")
		faultWithin(t, began, 0, "what stays wrong")
		s.wantCount("a", "")
	}
	// A re-entry that meets it leaves the hold as it was.
	faultNo(t, s.direct.Del(ctx, "redisson_lock_token:{a}").Err())
	held := faultLock(t, l, ctx, 1)
	faultNo(t, s.direct.Set(ctx, "redisson_lock_token:{a}", "many", 0).Err())
	_, err = l.Lock(held)
	faultTold(t, err, "counter")
	faultNo(t, l.Check(held))
	redistest.Eventually(t, faultBound, func() bool { return s.count("a") == "1" }, "the count is right")
	faultNo(t, l.Unlock(held))
	s.wantCount("a", "")
}

func TestInv5_ScriptFlushInTheMiddle(t *testing.T) {
	s := faultNew(t)
	l := fenced.NewLock(s.client(rlock.WithLease(3*time.Second), rlock.WithUnlockTimeout(faultBound)), "a")
	flush := func() {
		t.Helper()
		faultNo(t, s.direct.ScriptFlush(t.Context()).Err())
	}
	flush()
	outer := faultLock(t, l, t.Context(), 1)
	flush()
	inner := faultLock(t, l, outer, 2)
	flush()
	renewed := s.proxy.On("a renewal by text", redistest.And(redistest.Command("eval"), faultOf(t, "renew")), redistest.Duplicate)
	faultAwait(t, renewed.Fired(), "the lease is renewed")
	flush()
	faultNo(t, l.Unlock(inner))
	flush()
	// the reply of the EVAL is lost
	lost := s.proxy.On("the release by text", redistest.And(redistest.Command("eval"), faultOf(t, "unlock")), redistest.SwallowReply)
	faultNo(t, l.Unlock(outer))
	faultAwait(t, lost.Fired(), "the reply is lost")
	s.wantCount("a", "")
	s.wantCounter("a", "2")
}

// faultUser is a client as a user with these rights.
func faultUser(t *testing.T, server *redistest.Server, rights ...any) *redis.Client {
	t.Helper()
	args := append([]any{"acl", "setuser", "limited", "on", ">secret"}, rights...)
	faultNo(t, server.Client().Do(t.Context(), args...).Err())
	return server.Client(func(o *redis.Options) { o.Username, o.Password = "limited", "secret" })
}

func TestP10_UserWhoMayNotSubscribePolls(t *testing.T) {
	for what, rights := range map[string][]any{
		"no command":  {"~*", "&*", "+@all", "-subscribe", "-psubscribe"},
		"no channels": {"~*", "resetchannels", "+@all"},
	} {
		t.Run(what, func(t *testing.T) {
			server := faultReal(t)
			rdb := faultUser(t, server, rights...)
			var log faultLog
			const poll = 200 * time.Millisecond
			l := rlock.NewLock(faultClient(t, rdb, rlock.WithPollInterval(poll), log.option()), "a")
			other := rlock.NewLock(faultClient(t, server.Client()), "a")
			for range 3 {
				held, err := other.Lock(t.Context())
				faultNo(t, err)
				var mine context.Context
				done := faultGo(func() (err error) { mine, err = l.TryLock(t.Context(), 10*time.Second, 0); return err })
				redistest.Eventually(t, faultBound, func() bool { return len(log.With("NOPERM")) > 0 }, "the refusal is logged")
				faultNo(t, other.Unlock(held))
				began := time.Now()
				faultNo(t, faultGet(t, done, "the waiter"))
				faultWithin(t, began, poll, "the wait for a free lock")
				faultNo(t, l.Unlock(mine))
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
			server := faultReal(t)
			var log faultLog
			c := faultClient(t, faultUser(t, server, rights...), log.option())
			l := fenced.NewLock(c, "a")
			for token := range int64(3) {
				outer := faultLock(t, l, t.Context(), 2*token+1)
				inner := faultLock(t, l, outer, 2*token+2)
				faultNo(t, l.Unlock(inner))
				faultNo(t, l.Unlock(outer))
				if n := server.Client().Exists(t.Context(), "a").Val(); n != 0 {
					t.Fatal("the lock is left")
				}
			}
			// It is done, but waiters come late: that is said once, and counted.
			redistest.Eventually(t, faultBound, func() bool { return len(log.With("needs PUBLISH")) > 0 }, "the log says what right is missing")
			if all := log.With(""); len(all) != 1 || !strings.Contains(all[0], "redisson_lock__channel:{a}") {
				t.Errorf("logged: %q", all)
			}
			if n := c.Untold(); n != 3 {
				t.Errorf("%d releases of which nobody was told, want 3", n)
			}
		})
	}
}

func TestInv12_UserWithoutRightsIsTold(t *testing.T) {
	server := faultReal(t)
	for what, rights := range map[string][]any{
		"no scripts":     {"reset", "on", ">secret", "~*", "&*", "+@all", "-@scripting"},
		"no such keys":   {"reset", "on", ">secret", "~other:*", "&*", "+@all"},
		"a command less": {"reset", "on", ">secret", "~*", "&*", "+@all", "-hincrby"},
	} {
		l := fenced.NewLock(faultClient(t, faultUser(t, server, rights...)), "a")
		began := time.Now()
		_, err := l.Lock(t.Context())
		if err == nil {
			t.Errorf("%s: no error", what)
			continue
		}
		faultTold(t, err)
		t.Logf("%s: %v", what, err)
		faultWithin(t, began, 0, what)
	}
	if n := server.Client().Exists(t.Context(), "a").Val(); n != 0 {
		t.Error("a lock without a holder is left")
	}
}

func TestInv12_WrongPasswordIsNotRiddenOut(t *testing.T) {
	server := faultReal(t, "--requirepass", "secret")
	for password, says := range map[string]string{"wrong": "WRONGPASS", "": "NOAUTH"} {
		l := rlock.NewLock(faultClient(t, server.Client(func(o *redis.Options) { o.Password = password })), "a")
		began := time.Now()
		_, err := l.Lock(t.Context())
		faultTold(t, err, says)
		_, err = l.TryLock(t.Context(), time.Minute, 0)
		faultTold(t, err, says)
		faultWithin(t, began, 0, "a wrong password")
	}
}

func TestP13_ExhaustedPool(t *testing.T) {
	s := faultNew(t)
	rdb := redistest.Client(t, s.addr, func(o *redis.Options) {
		o.PoolSize, o.PoolTimeout = 1, 200*time.Millisecond
	})
	blocked := rdb.Conn() // the only connection is taken
	faultNo(t, blocked.Ping(t.Context()).Err())
	l := rlock.NewLock(faultClient(t, rdb), "a")
	began := time.Now()
	_, err := l.TryLock(faultTimeout(t, t.Context(), 100*time.Millisecond), 0, 0)
	faultIs(t, err, context.DeadlineExceeded)
	faultWithin(t, began, 100*time.Millisecond, "a call whose context ends")
	began = time.Now()
	_, err = l.TryLock(t.Context(), 0, 0)
	faultTold(t, err, "pool")
	faultWithin(t, began, 2*time.Second, "one try")
	var held context.Context
	done := faultGo(func() (err error) { held, err = l.Lock(t.Context()); return err })
	select {
	case err := <-done:
		t.Fatalf("got %v without a connection", err)
	case <-time.After(600 * time.Millisecond):
	}
	faultNo(t, blocked.Close())
	faultNo(t, faultGet(t, done, "the lock"))
	faultNo(t, l.Unlock(held))
	s.wantCount("a", "")
}

// Close ends what waits for a server that does not answer.
func TestInv12_CloseWithAFrozenServer(t *testing.T) {
	server := faultReal(t)
	c := faultClient(t, server.Client())
	l := rlock.NewLock(c, "a")
	held, err := l.Lock(t.Context())
	faultNo(t, err)
	server.Freeze()
	defer server.Thaw()
	var waiters []<-chan error
	for range 5 {
		waiters = append(waiters, faultGo(func() error { _, err := l.Lock(t.Context()); return err }))
	}
	time.Sleep(100 * time.Millisecond) // for them to wait; without it the test only sees less
	began := time.Now()
	faultNo(t, c.Close())
	faultWithin(t, began, 0, "Close")
	for _, w := range waiters {
		faultIs(t, faultGet(t, w, "a waiter"), rlock.ErrClosed)
	}
	faultWithin(t, began, 0, "the waiters")
	faultIs(t, context.Cause(held), rlock.ErrClosed)
}
