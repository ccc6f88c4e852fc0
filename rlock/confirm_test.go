package rlock_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/realtime"
	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/fencelock/fencelock/observe/locktrace"
	"github.com/fencelock/fencelock/rlock"
)

func TestConfirm_Arguments(t *testing.T) {
	rdb := redistest.Client(t, redistest.Start(t)) // with the ReadTimeout of go-redis
	for _, c := range []struct {
		want string // "" for none
		opts []rlock.Option
	}{
		{"", []rlock.Option{rlock.WithReplicas(1, time.Second)}},
		{"", []rlock.Option{rlock.WithReplicas(100, time.Millisecond)}},
		{"", []rlock.Option{rlock.WithFsync(1, 0, time.Second)}},
		{"", []rlock.Option{rlock.WithFsync(0, 100, time.Second)}},
		{"leave the option out", []rlock.Option{rlock.WithReplicas(0, time.Second)}},
		{"1 to 100 replicas", []rlock.Option{rlock.WithReplicas(101, time.Second)}},
		{"from a millisecond", []rlock.Option{rlock.WithReplicas(1, 0)}},
		{"from a millisecond", []rlock.Option{rlock.WithReplicas(1, -time.Second)}},
		{"a third of the lease, which is 30s", []rlock.Option{rlock.WithReplicas(1, 10*time.Second)}},
		{"a third of the lease, which is 1.5s", []rlock.Option{rlock.WithFsync(1, 0, 500*time.Millisecond), rlock.WithLease(1500 * time.Millisecond)}},
		{"0 or 1 for the server", []rlock.Option{rlock.WithFsync(2, 0, time.Second)}},
		{"not 0 for both", []rlock.Option{rlock.WithFsync(0, 0, time.Second)}},
		{"not 0 for both", []rlock.Option{rlock.WithFsync(1, -1, time.Second)}},
		{"use one of them", []rlock.Option{rlock.WithFsync(1, 0, time.Second), rlock.WithReplicas(1, time.Second)}},
		{"a longer ReadTimeout", []rlock.Option{rlock.WithReplicas(1, 5*time.Second)}},
	} {
		client, err := rlock.New(rdb, c.opts...)
		switch {
		case err == nil && c.want != "":
			t.Errorf("no error, want %q", c.want)
		case err != nil && (c.want == "" || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%v, want %q", err, c.want)
		}
		if client != nil {
			_ = client.Close()
		}
	}
	clusters := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{rdb.Options().Addr}, ReadTimeout: time.Second})
	defer func() { _ = clusters.Close() }()
	if _, err := rlock.New(clusters, rlock.WithReplicas(1, time.Second)); err == nil || !strings.Contains(err.Error(), "a longer ReadTimeout") {
		t.Errorf("on a cluster: %v", err)
	}

	l := rlock.NewLock(newClient(t, rdb, rlock.WithReplicas(1, 100*time.Millisecond)), "a")
	if _, err := l.LockLease(t.Context(), 100*time.Millisecond); err == nil || !strings.Contains(err.Error(), "use more than the 100ms") {
		t.Errorf("a lease as long as the timeout: %v", err)
	}
}

// An acquire that is not confirmed is an error, and released.
func TestConfirm_NoReplicas(t *testing.T) {
	realtime.Test(t, "confirmations within 20 ms, and a wait of 2 s")
	t.Parallel()
	rdb := redistest.New(t)
	client := newClient(t, rdb, rlock.WithReplicas(1, 20*time.Millisecond), rlock.WithPatience(500*time.Millisecond))
	l, plain := fenced.NewLock(client, "a"), fenced.NewLock(newClient(t, rdb), "a")
	_, token, err := l.TryLockAndGetToken(t.Context(), 0, 0)
	locktest.IsError(t, err, rlock.ErrUnconfirmed)
	wantTold(t, err, "0 of 1 replicas", `"a"`)
	if token != 0 {
		t.Errorf("an error, and the token %d", token)
	}
	confirmFree(t, plain, 2)

	began := time.Now()
	_, _, err = l.LockAndGetToken(t.Context())
	locktest.IsError(t, err, rlock.ErrUnconfirmed)
	if took := time.Since(began); took < 500*time.Millisecond {
		t.Errorf("it was not ridden out: %v", took)
	}
	confirmFree(t, plain, 4)
	_, _, err = l.TryLockAndGetToken(t.Context(), 2*time.Second, 0)
	locktest.IsError(t, err, rlock.ErrUnconfirmed)
	confirmFree(t, plain, 6)

	// What somebody else holds is told as ever.
	held, _, err := plain.LockAndGetToken(t.Context())
	locktest.NoError(t, err)
	_, _, err = l.TryLockAndGetToken(t.Context(), 2*time.Second, 0)
	locktest.IsError(t, err, rlock.ErrNotAcquired)
	locktest.NoError(t, plain.Unlock(held))
}

// confirmFree requires that the lock becomes free, and takes it once: with this token, or a later one, where a repeat that
// came after the release has taken one more.
func confirmFree(t *testing.T, l *fenced.Lock, want int64) {
	t.Helper()
	held, token, err := l.TryLockAndGetToken(t.Context(), 10*time.Second, 0)
	locktest.NoError(t, err)
	if token < want {
		t.Errorf("the token is %d, want %d or more", token, want)
	}
	locktest.NoError(t, l.Unlock(held))
}

// confirmSite is a master with a replica, and its clients.
type confirmSite struct {
	*redistest.Replication
	t      *testing.T
	direct *redis.Client
}

func confirmNew(t *testing.T) *confirmSite {
	t.Helper()
	realtime.Test(t, "a replica that confirms within its bound")
	t.Parallel()
	r := redistest.Replicated(t, 1)
	return &confirmSite{r, t, r.Master.Client()}
}

func (s *confirmSite) lock(name string, opts ...rlock.Option) *fenced.Lock {
	s.t.Helper()
	return fenced.NewLock(newClient(s.t, s.Master.Client(), opts...), name)
}

// field is the field of the hold that has the lock, "" if it is free.
func (s *confirmSite) field(name string) string {
	s.t.Helper()
	fields, err := s.direct.HKeys(s.t.Context(), name).Result()
	locktest.NoError(s.t, err)
	for _, f := range fields {
		if !strings.HasSuffix(f, "#") {
			return f
		}
	}
	return ""
}

func (s *confirmSite) wantFree(name string) {
	s.t.Helper()
	redistest.Eventually(s.t, bound, func() bool { return s.field(name) == "" }, "%q is free", name)
}

func TestConfirm_ReplicaHasIt(t *testing.T) {
	s := confirmNew(t)
	l := s.lock("a", rlock.WithReplicas(1, 3*time.Second), rlock.WithHandoffs(4))
	held, token, err := l.LockAndGetToken(t.Context())
	locktest.NoError(t, err)
	replica := s.Replicas[0].Client()
	if n := replica.HLen(t.Context(), "a").Val(); n != 1 {
		t.Errorf("the replica has %d fields", n)
	}
	nested, again, err := l.LockAndGetToken(held)
	locktest.NoError(t, err)
	if again != token+1 {
		t.Errorf("tokens %d and %d", token, again)
	}
	locktest.NoError(t, l.Unlock(nested))
	locktest.NoError(t, l.Unlock(held))

	var all sync.WaitGroup // handoffs and batches
	sum := 0
	for i := range 20 {
		other := fenced.NewLock(newClient(t, s.Master.Client(), rlock.WithReplicas(1, 3*time.Second)), fmt.Sprint("b", i%3))
		for range 10 {
			all.Go(func() {
				if err := l.Do(t.Context(), func(context.Context, int64) error { sum++; return nil }); err != nil {
					t.Error(err)
				}
			})
			all.Go(func() {
				if err := other.Do(t.Context(), func(context.Context, int64) error { return nil }); err != nil {
					t.Error(err)
				}
			})
		}
	}
	all.Wait()
	if sum != 200 {
		t.Errorf("%d sections of 200", sum)
	}
	s.wantFree("a")

	two := s.lock("a", rlock.WithReplicas(2, time.Second))
	err = answered(t, func() error { return lockOnly(locktest.NoToken(two.TryLockAndGetToken(t.Context(), 0, 0))) })
	locktest.IsError(t, err, rlock.ErrUnconfirmed)
	wantTold(t, err, "1 of 2 replicas")
	s.wantFree("a")
}

// P56: a local handoff needs no confirmation: with the acquire a replica has confirmed the hold, and the counter behind all its tokens.
func TestConfirm_LocalHandoffs(t *testing.T) {
	s := confirmNew(t)
	var local atomic.Int64
	l := s.lock("a", rlock.WithReplicas(1, 3*time.Second), rlock.WithLocalHandoffs(16), rlock.WithTrace(&locktrace.Trace{
		AcquireDone: func(e locktrace.AcquireDone) {
			if e.By == locktrace.FromLocal {
				local.Add(1)
			}
		},
	}))
	replica := s.Replicas[0].Client()
	var all sync.WaitGroup
	for range 100 {
		all.Go(func() {
			err := l.Do(t.Context(), func(ctx context.Context, token int64) error {
				if last, err := replica.Get(ctx, "redisson_lock_token:{a}").Int64(); err != nil || last < token {
					t.Errorf("token %d, the replica's counter %d: %v", token, last, err)
				}
				if n := replica.HLen(ctx, "a").Val(); n == 0 {
					t.Error("the replica has no hold")
				}
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	s.wantFree("a")
	if local.Load() == 0 {
		t.Error("there was no local handoff")
	}
}

// A call that may wait keeps what it has taken until a replica has it.
func TestConfirm_RidesOut(t *testing.T) {
	s := confirmNew(t)
	l := s.lock("a", rlock.WithReplicas(1, 100*time.Millisecond), rlock.WithPatience(bound))
	s.Replicas[0].Freeze()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var held context.Context
	var token int64
	done := locktest.Start(func() (err error) { held, token, err = l.LockAndGetToken(ctx); return err })
	redistest.Eventually(t, bound, func() bool { return s.field("a") != "" }, "it is taken")
	field := s.field("a")
	select {
	case err := <-done:
		t.Fatalf("it counts although no replica has it: %v", err)
	case <-time.After(300 * time.Millisecond): // three timeouts
	}
	s.Replicas[0].Thaw()
	locktest.NoError(t, redistest.Await(t, bound, done, "the lock is taken"))
	if got := s.field("a"); got != field || token != 1 {
		t.Errorf("field %q and then %q, token %d", field, got, token)
	}
	locktest.NoError(t, l.Unlock(held))
	s.wantFree("a")
}

// No call outlives its context because a replica does not answer (Inv6), and what it has taken is released.
func TestConfirm_Inv6_ContextEnds(t *testing.T) {
	s := confirmNew(t)
	l := s.lock("a", rlock.WithReplicas(1, 4*time.Second))
	locktest.NoError(t, l.Do(t.Context(), func(context.Context, int64) error { return nil }))
	s.Replicas[0].Freeze()
	for what, try := range map[string]func(context.Context) error{
		"Lock":    func(ctx context.Context) error { _, _, err := l.LockAndGetToken(ctx); return err },
		"TryLock": func(ctx context.Context) error { _, _, err := l.TryLockAndGetToken(ctx, 0, 0); return err },
	} {
		began := time.Now()
		err := try(withTimeout(t, t.Context(), 100*time.Millisecond))
		locktest.IsError(t, err, context.DeadlineExceeded)
		within(t, began, 100*time.Millisecond, what)
		s.wantFree("a")
		within(t, began, 2*time.Second, "the release after "+what)
	}
}

// An extension that no replica has does not count: the hold ends at the deadline of the last one that counted, although the
// lock is there for longer.
func TestConfirm_Renewals(t *testing.T) {
	s := confirmNew(t)
	const lease = 4500 * time.Millisecond
	log := &locktest.Log{}
	l := s.lock("a", rlock.WithLease(lease), rlock.WithReplicas(1, time.Second), rlock.WithLogger(log.Logger()))
	held, _, err := l.LockAndGetToken(t.Context())
	locktest.NoError(t, err)
	select {
	case <-held.Done():
		t.Fatalf("a hold that is confirmed ended: %v", context.Cause(held))
	case <-time.After(lease + lease/2):
	}
	frozen := time.Now()
	s.Replicas[0].Freeze()
	redistest.Await(t, bound, held.Done(), "the hold ends")
	if took := time.Since(frozen); took > redistest.Bound(frozen, lease+100*time.Millisecond) {
		t.Errorf("it ended %v after the last renewal that can have counted, its lease is %v", took, lease)
	}
	locktest.IsError(t, context.Cause(held), rlock.ErrLost)
	if left := s.direct.PTTL(t.Context(), "a").Val(); left < lease/4 {
		t.Errorf("its renewals were not executed (%v left): this test shows nothing", left)
	}
	if len(log.With("0 of 1 replicas")) == 0 {
		t.Error("nothing was logged")
	}
	locktest.IsError(t, l.Unlock(held), rlock.ErrLost)
	s.wantFree("a")
}

// A lock that was passed on, and not confirmed, is the next waiter's as soon as it is; the Unlock that passed it on is done.
func TestConfirm_Handoff(t *testing.T) {
	s := confirmNew(t)
	client := newClient(t, s.Master.Client(), rlock.WithReplicas(1, 100*time.Millisecond), rlock.WithPatience(bound),
		rlock.WithPollInterval(time.Hour))
	l := rlock.NewLock(client, "a")
	queued := func(n int) {
		redistest.Eventually(t, bound, func() bool { got, idle := client.InQueue("a"); return got == n && idle }, "%d wait", n)
	}
	// A client passes a lock on for 20 ms at most, then others have a turn. So what takes long is done before the first of two waiters has it.
	for began := time.Now(); time.Since(began) < failoverBound; {
		held, err := l.Lock(t.Context())
		locktest.NoError(t, err)
		var one, two context.Context
		first := locktest.Start(func() (err error) { one, err = l.Lock(t.Context()); return err })
		queued(1)
		second := locktest.Start(func() (err error) { two, err = l.Lock(t.Context()); return err })
		queued(2)
		locktest.NoError(t, l.Unlock(held))
		locktest.NoError(t, redistest.Await(t, bound, first, "the first waiter has it"))
		before := s.field("a")
		s.Replicas[0].Freeze()
		locktest.NoError(t, l.Unlock(one))
		after := s.field("a")
		passed := after != "" && after != before
		if passed {
			select {
			case err := <-second:
				t.Fatalf("it counts although no replica has it: %v", err)
			case <-time.After(300 * time.Millisecond):
			}
		}
		s.Replicas[0].Thaw()
		locktest.NoError(t, redistest.Await(t, bound, second, "the next waiter has it"))
		if got := s.field("a"); passed && got != after {
			t.Errorf("passed on to %q, held by %q", after, got)
		}
		locktest.NoError(t, l.Unlock(two))
		s.wantFree("a")
		if passed {
			return
		}
	}
	t.Fatal("the lock was never passed on")
}

// A re-entry that is not confirmed is an error, and its hold lives on as it was.
func TestConfirm_Reentry(t *testing.T) {
	s := confirmNew(t)
	l := s.lock("a", rlock.WithReplicas(1, 50*time.Millisecond), rlock.WithPatience(3*time.Second))
	held, token, err := l.LockAndGetToken(t.Context())
	locktest.NoError(t, err)
	s.Replicas[0].Freeze()
	_, _, err = l.LockAndGetToken(held)
	locktest.IsError(t, err, rlock.ErrUnconfirmed)
	locktest.NoError(t, held.Err())
	if now, err := l.Token(held); err != nil || now != token {
		t.Errorf("its token was %d and is %d, %v", token, now, err)
	}
	redistest.Eventually(t, bound, func() bool { return s.direct.HGet(t.Context(), "a", s.field("a")).Val() == "1" }, "the count is 1 again")
	locktest.NoError(t, l.Unlock(held))
	s.wantFree("a")
}

// While a replica does not answer, many calls that travel together are told within their time, and unlocks are done.
func TestConfirm_ManyCalls(t *testing.T) {
	s := confirmNew(t)
	const timeout = 500 * time.Millisecond
	client := newClient(t, s.Master.Client(), rlock.WithReplicas(1, timeout))
	held := make([]context.Context, 50)
	for i := range held {
		var err error
		held[i], err = rlock.NewLock(client, fmt.Sprint("held", i)).Lock(t.Context())
		locktest.NoError(t, err)
	}
	s.Replicas[0].Freeze()
	began := time.Now()
	var all sync.WaitGroup
	for i := range held {
		all.Go(func() {
			l := rlock.NewLock(client, fmt.Sprint("free", i))
			if _, err := l.TryLock(t.Context(), 0, 0); !errors.Is(err, rlock.ErrUnconfirmed) {
				t.Errorf("TryLock: %v", err)
			}
		})
		all.Go(func() {
			if err := rlock.NewLock(client, fmt.Sprint("held", i)).Unlock(held[i]); err != nil {
				t.Errorf("Unlock: %v", err)
			}
		})
	}
	all.Wait()
	within(t, began, 2*timeout, "fifty calls at once")
	for i := range held {
		s.wantFree(fmt.Sprint("held", i))
		s.wantFree(fmt.Sprint("free", i))
	}
}

// The disk: what the server or a replica has not got on it does not count.
func TestConfirm_Fsync(t *testing.T) {
	realtime.Test(t, "disks that confirm within 3 s")
	t.Parallel()
	always := redistest.Replicated(t, 1, "--appendonly", "yes", "--appendfsync", "always")
	never := redistest.Replicated(t, 1)
	if err := never.Master.Client().Do(t.Context(), "waitaof", 0, 0, 1).Err(); err != nil { // Redis before 7.2
		if !strings.Contains(err.Error(), "unknown command") {
			t.Fatal(err)
		}
		for _, site := range []*redistest.Replication{always, never} {
			_, err := rlock.NewLock(newClient(t, site.Master.Client(), rlock.WithFsync(1, 0, time.Second)), "a").Lock(t.Context())
			locktest.IsError(t, err, rlock.ErrUnconfirmed)
			wantTold(t, err, "Redis 7.2 or later")
		}
		return
	}
	for what, opt := range map[string]rlock.Option{
		"server": rlock.WithFsync(1, 0, 3*time.Second), "replica": rlock.WithFsync(0, 1, 3*time.Second), "both": rlock.WithFsync(1, 1, 3*time.Second),
	} {
		l := rlock.NewLock(newClient(t, always.Master.Client(), opt), what)
		held, err := l.Lock(t.Context())
		locktest.NoError(t, err)
		if log := redistest.Client(t, always.Replicas[0].Addr()).Exists(t.Context(), what).Val(); what != "server" && log != 1 {
			t.Errorf("%s: the replica has no lock", what)
		}
		locktest.NoError(t, l.Unlock(held))
	}
	l := rlock.NewLock(newClient(t, never.Master.Client(), rlock.WithFsync(1, 0, time.Second)), "a")
	_, err := l.Lock(t.Context())
	locktest.IsError(t, err, rlock.ErrUnconfirmed)
	wantTold(t, err, "appendonly is disabled", "set appendonly yes")
	l = rlock.NewLock(newClient(t, never.Master.Client(), rlock.WithFsync(0, 1, 100*time.Millisecond)), "b")
	_, err = l.TryLock(t.Context(), 0, 0)
	locktest.IsError(t, err, rlock.ErrUnconfirmed)
	wantTold(t, err, "0 of 1 replicas")
}
