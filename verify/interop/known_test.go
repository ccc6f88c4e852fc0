package interop

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
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

// The faults of these tests are those that were reported of Redisson; cases.txt has the numbers.

// Redis stands still while an acquire, and then a re-entry, is sent again and again, and then runs all copies: each counts
// once, one Unlock each frees the lock, and Redisson gets it.
func TestAnAcquireThatIsSentAgainCountsOnce(t *testing.T) {
	t.Parallel()
	const copies = 3
	s := newSite(t)
	ctx := t.Context()
	rdb := s.server.Client(func(o *redis.Options) {
		o.ReadTimeout, o.MinIdleConns = 150*time.Millisecond, 2*copies // a new connection could not be greeted by a frozen server
	})
	var sent sentHook
	rdb.AddHook(&sent)
	ours := fenced.NewLock(newClient(t, rdb), "l")
	java := s.java().lock("a", fencedKind, "l")
	free(t, withoutToken{ours}) // the server knows the scripts

	// again lets the call send so many copies, and returns when it is answered.
	again := func(call func() (context.Context, error)) context.Context {
		t.Helper()
		redistest.Eventually(t, patience, func() bool { return rdb.PoolStats().IdleConns >= 2*copies }, "connections are there")
		before := s.calls()
		s.server.Freeze()
		sent.Store(0)
		done := begin(call)
		redistest.Eventually(t, patience, func() bool { return sent.Load() >= copies }, "%d copies are sent", copies)
		s.server.Thaw()
		got := await(t, done, patience, "an answer")
		noError(t, got.err)
		redistest.Eventually(t, patience, func() bool { return s.calls() >= before+copies }, "the server runs %d copies", copies)
		return got.ctx
	}
	counts := func(ctx context.Context, want int) {
		t.Helper()
		n, err := ours.HoldCount(ctx)
		noError(t, err)
		equal(t, "hold count", n, want)
	}
	held := again(func() (context.Context, error) { return locktest.NoToken(ours.LockAndGetToken(ctx)) })
	counts(held, 1)
	inner := again(func() (context.Context, error) { return locktest.NoToken(ours.LockAndGetToken(held)) })
	counts(inner, 2)
	noError(t, ours.Unlock(inner))
	counts(held, 1)
	java.is("tryLock", false, "wait", "0")
	noError(t, ours.Unlock(held))
	java.is("tryLock", true, "wait", ms(soon))
}

// sentHook counts the commands that call scripts.
type sentHook struct{ atomic.Int64 }

func (h *sentHook) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h *sentHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if cmd.Name() == "evalsha" {
			h.Add(1)
		}
		return next(ctx, cmd)
	}
}

func (h *sentHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		h.Add(1)
		return next(ctx, cmds)
	}
}

// Acquires whose callers give up at any moment, and unlocks that follow at once: no renewal goes on that nobody asked for,
// so that no key is left when a lease is over, nor comes back.
func TestNoRenewalOutlivesItsHold(t *testing.T) {
	realtime.Test(t, "leases of 1.5 s")
	t.Parallel()
	const lease = shortLease
	s := newSite(t)
	c := s.client(rlock.WithLease(lease))
	var workers sync.WaitGroup
	var mu sync.Mutex
	taken, given := 0, 0
	for i := range 16 {
		rng := rand.New(rand.NewPCG(3, uint64(i)))
		l := rlock.NewLock(c, fmt.Sprint("l", i%12)) // some alone, some contended
		workers.Go(func() {
			for range 150 {
				ctx, cancel := context.WithTimeout(context.Background(), time.Duration(rng.IntN(4000))*time.Microsecond)
				held, err := l.Lock(ctx)
				if err == nil {
					err = l.Unlock(held)
				}
				cancel()
				mu.Lock()
				switch {
				case err == nil:
					taken++
				case errors.Is(err, context.DeadlineExceeded) || errors.Is(err, rlock.ErrLost):
					given++
				default:
					t.Error(err)
				}
				mu.Unlock()
			}
		})
	}
	workers.Wait()
	if taken < 100 || given < 100 {
		t.Fatalf("%d acquires, %d that gave up: neither must be rare", taken, given)
	}
	for began := time.Now(); time.Since(began) < 3*lease; time.Sleep(10 * time.Millisecond) {
		keys := s.keys()
		if after := time.Since(began); len(keys) > 0 && after > 3*lease/2 {
			t.Fatalf("%v after the last call, with a lease of %v, there are %v", after, lease, keys)
		}
	}
}

// A restart of Redis, and connections that break all the time, do not stop the watchdog: what is locked after it, and
// during it, is renewed.
func TestTheWatchdogGoesOnAfterFaults(t *testing.T) {
	t.Parallel()
	const lease = shortLease
	s := newSite(t)
	l := rlock.NewLock(s.named(ourName, rlock.WithLease(lease)), "l")
	java := s.java()
	held, _ := take(t, l, t.Context())
	s.server.Restart() // the data are gone
	await(t, held.Done(), soon, "the hold is found lost")
	isError(t, l.Unlock(held), rlock.ErrLost)

	held, _ = take(t, l, t.Context())
	renewed := func(what string, meanwhile func()) {
		t.Helper()
		for began := time.Now(); time.Since(began) < 3*lease; time.Sleep(20 * time.Millisecond) {
			meanwhile()
			if err := l.Check(held); err != nil {
				t.Fatalf("%s, after %v: %v", what, time.Since(began), err)
			}
		}
		n, err := l.HoldCount(held)
		noError(t, err)
		equal(t, what+": hold count", n, 1)
	}
	renewed("after a restart", func() {})
	last := time.Now()
	renewed("while connections break", func() {
		if time.Since(last) > lease/4 {
			last = time.Now()
			noError(t, s.rdb.ClientKillByFilter(context.Background(), "TYPE", "normal", "SKIPME", "yes").Err())
		}
	})
	java.lock("a", plainKind, "l").is("tryLock", false, "wait", "0")
	noError(t, l.Unlock(held))
}

// The message of a release falls into the moment in which the waiter's subscription is broken. It is not waited for: the
// next confirmation is a reason to look. (The poll is a minute away, the holder's lease half of one.)
func TestAMessageThatWasMissed(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	ctx := t.Context()
	java := s.java()
	c := s.named(ourName)
	for i := range 5 {
		name := fmt.Sprint("l", i)
		l := fenced.NewLock(c, name)
		java.lock("a", fencedKind, name).lock()
		call := begin(func() (context.Context, error) { return locktest.NoToken(l.LockAndGetToken(ctx)) })
		channel := "redisson_lock__channel:{" + name + "}"
		s.asleep(channel, 1)
		listeners := s.subscribers(ourName)
		equal(t, "subscription connections", len(listeners), 1)
		var told *redis.IntCmd
		_, err := s.rdb.TxPipelined(ctx, func(p redis.Pipeliner) error { // what Redisson does, and nobody listens
			p.ClientKillByFilter(ctx, "ID", listeners[0])
			p.Del(ctx, name)
			told = p.Publish(ctx, channel, "0")
			return nil
		})
		noError(t, err)
		equal(t, "listeners", told.Val(), 0)
		got := await(t, call, soon, "the lock that is free")
		noError(t, got.err)
		noError(t, l.Unlock(got.ctx))
	}
}

// Many callers of a few locks leave no subscription, and need one connection a client for all of them.
func TestNoSubscriptionIsLeft(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	clients := []*rlock.Client{s.named(ourName), s.named(ourName)}
	var workers sync.WaitGroup
	for i := range 32 {
		rng := rand.New(rand.NewPCG(5, uint64(i)))
		workers.Go(func() {
			for range 12 {
				l := rlock.NewLock(clients[i%2], fmt.Sprint("l", rng.IntN(5)))
				held, err := l.Lock(context.Background())
				if err == nil {
					time.Sleep(time.Duration(rng.IntN(5)) * time.Millisecond)
					err = l.Unlock(held)
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	done := make(chan struct{})
	go func() { workers.Wait(); close(done) }()
	most := 0
	for over := false; !over; {
		select {
		case <-done:
			over = true
		case <-time.After(5 * time.Millisecond):
			most = max(most, len(s.subscribers(ourName)))
		}
	}
	equal(t, "most subscription connections at a time", most, 2)
	redistest.Eventually(t, soon, func() bool {
		return len(s.rdb.PubSubChannels(context.Background(), "*").Val()) == 0 && len(s.subscribers(ourName)) == 0
	}, "no channel and no subscription connection is left")
}
