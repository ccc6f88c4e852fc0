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
	"github.com/fencelock/fencelock/internal/test/realtime"
	"github.com/fencelock/fencelock/rlock"
)

// What Redisson tests of its own locks, where no test elsewhere does it; cases.txt has the list.

// The lease is the longest that was asked for, also after the inner unlocks.
func TestLeaseAfterInnerUnlocks(t *testing.T) {
	realtime.Test(t, "a time to live, to 5 s")
	t.Parallel()
	s := newSite(t)
	l := rlock.NewLock(s.client(), "l")
	held := []context.Context{t.Context()}
	for range 3 {
		next, err := l.LockLease(held[len(held)-1], 10*time.Minute)
		noError(t, err)
		held = append(held, next)
	}
	noError(t, l.Unlock(held[3]))
	noError(t, l.Unlock(held[2]))
	ttl, err := l.TTL(t.Context())
	noError(t, err)
	about(t, "TTL", ttl, 10*time.Minute)
	noError(t, l.Unlock(held[1]))
	free(t, l)
}

// Who asks whether they hold the lock, and how often, is told of their own hold, and not of others'.
func TestHeldByWhom(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	l := rlock.NewLock(s.client(), "l")
	expect := func(ctx context.Context, want int) {
		t.Helper()
		n, err := l.HoldCount(ctx)
		noError(t, err)
		equal(t, "HoldCount", n, want)
		is, err := l.IsHeld(ctx)
		noError(t, err)
		equal(t, "IsHeld", is, want > 0)
	}
	expect(t.Context(), 0)
	for range 2 {
		outer, _ := take(t, l, t.Context())
		expect(outer, 1)
		inner, _ := take(t, l, outer)
		expect(inner, 2)
		expect(t.Context(), 0)
		expect(rlock.NewHolder(inner), 0)
		noError(t, l.Unlock(inner))
		expect(outer, 1)
		noError(t, l.Unlock(outer))
		expect(outer, 0)
	}
}

// A pool of one connection is enough for several callers of several locks.
func TestAPoolOfOneConnection(t *testing.T) {
	realtime.Test(t, "turns within 5 s")
	t.Parallel()
	s := newSite(t)
	c := newClient(t, s.server.Client(func(o *redis.Options) { o.PoolSize = 1 }))
	for range 3 {
		var callers sync.WaitGroup
		for i := range 8 {
			l := rlock.NewLock(c, fmt.Sprint("l", i/2))
			callers.Go(func() {
				held, err := l.TryLock(context.Background(), soon, 0)
				if err == nil {
					err = l.Unlock(held)
				}
				if err != nil {
					t.Error(err)
				}
			})
		}
		callers.Wait()
	}
}

// Many try once, all the time, and who gets the lock is renewed: a hold of two leases outlives them.
func TestRenewedAmongManyTries(t *testing.T) {
	realtime.Test(t, "a lease of 1.5 s")
	t.Parallel()
	const lease = shortLease
	s := newSite(t)
	l := rlock.NewLock(s.client(rlock.WithLease(lease)), "l")
	var tries atomic.Int64
	var callers sync.WaitGroup
	ctx, stop := context.WithTimeout(t.Context(), 2*lease)
	defer stop()
	long := 0 // guarded by the lock
	for i := range 16 {
		rng := rand.New(rand.NewPCG(11, uint64(i)))
		callers.Go(func() {
			for ctx.Err() == nil {
				held, err := l.TryLock(context.Background(), 0, 0)
				if tries.Add(1); errors.Is(err, rlock.ErrNotAcquired) {
					time.Sleep(time.Duration(rng.IntN(1000)) * time.Microsecond)
					continue
				}
				if err == nil && rng.IntN(100) == 0 {
					long++
					time.Sleep(2 * lease)
					err = l.Check(held)
				}
				if err == nil {
					err = l.Unlock(held)
				}
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	callers.Wait()
	if long == 0 || tries.Load() < 1000 {
		t.Errorf("%d tries, %d long holds", tries.Load(), long)
	}
}

// Sixteen clients, and sixteen callers of one: a number that nothing else protects is counted right, and so is what the
// race detector watches.
func TestManyClientsCountRight(t *testing.T) {
	for name, clients := range map[string]int{"one client": 1, "sixteen clients": 16} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const callers, rounds = 16, 20
			s := newSite(t)
			var locks []*rlock.Lock
			for range clients {
				locks = append(locks, rlock.NewLock(s.client(), "l"))
			}
			count := 0
			var all sync.WaitGroup
			for i := range callers {
				l := locks[i%clients]
				all.Go(func() {
					for range rounds {
						if err := l.Do(context.Background(), func(context.Context) error {
							seen := count
							time.Sleep(100 * time.Microsecond)
							count = seen + 1
							return nil
						}); err != nil {
							t.Error(err)
						}
					}
				})
			}
			all.Wait()
			equal(t, "count", count, callers*rounds)
		})
	}
}

// Many locks, each of which protects a number in Redis that is read and written in two commands, by callers in Go and
// threads in the JVM: no update is lost, whichever way they wait.
func TestNoUpdateIsLost(t *testing.T) {
	t.Parallel()
	const callers, threads, keys = 6, 4, 25
	s := newSite(t)
	c, client := s.client(), s.java()
	var all sync.WaitGroup
	update := func(key string) error {
		n, err := s.rdb.Get(context.Background(), key).Int()
		if err != nil && !errors.Is(err, redis.Nil) {
			return err
		}
		return s.rdb.Set(context.Background(), key, n+1, 0).Err()
	}
	for i := range callers {
		all.Go(func() {
			for k := range keys {
				l := fenced.NewLock(c, fmt.Sprint("lock", k))
				for done := false; !done; {
					held, _, err := l.TryLockAndGetToken(context.Background(), time.Duration(10*i)*time.Millisecond, 0)
					if errors.Is(err, rlock.ErrNotAcquired) || errors.Is(err, context.DeadlineExceeded) {
						continue
					}
					if err == nil {
						err = errors.Join(update(fmt.Sprint("key", k)), l.Unlock(held))
					}
					if err != nil {
						t.Error(err)
					}
					done = true
				}
			}
		})
	}
	for i := range threads {
		all.Go(func() {
			for k := range keys {
				l := client.lock(fmt.Sprint("thread", i), fencedKind, fmt.Sprint("lock", k))
				_, err := l.try("lock")
				if err == nil {
					err = update(fmt.Sprint("key", k))
				}
				if err == nil {
					_, err = l.try("unlock")
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	for k := range keys {
		equal(t, fmt.Sprint("key", k), s.rdb.Get(context.Background(), fmt.Sprint("key", k)).Val(), fmt.Sprint(callers+threads))
	}
}

// A lock that was re-entered and unlocked to the end is renewed as any other when it is taken again, for as long as it is
// held.
func TestRenewedAfterAReentry(t *testing.T) {
	realtime.Test(t, "a lease of 1.5 s")
	t.Parallel()
	const lease = shortLease
	s := newSite(t)
	l := rlock.NewLock(s.client(rlock.WithLease(lease)), "l")
	outer, _ := take(t, l, t.Context())
	inner, _ := take(t, l, outer)
	noError(t, l.Unlock(inner))
	noError(t, l.Unlock(outer))
	held, _ := take(t, l, t.Context())
	other := rlock.NewLock(s.client(), "l")
	_, err := other.TryLock(t.Context(), 3*lease, 0)
	isError(t, err, rlock.ErrNotAcquired)
	noError(t, l.Check(held))
	noError(t, l.Unlock(held))
}
