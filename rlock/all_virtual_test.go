package rlock_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/fencelock/fencelock/rlock"
)

// named returns locks of these names.
func named(client *rlock.Client, names ...string) (all []*rlock.Lock) {
	for _, name := range names {
		all = append(all, rlock.NewLock(client, name))
	}
	return all
}

// DoAll takes locks in the order of their names, whatever the order in which they are given: two callers with the reverse order never have each
// what the other waits for.
func TestDoAllGoesByTheNames(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		a, b := newClient(t, rdb), newClient(t, redistest.PipeClient(t, m))
		inside := 0
		both := func(locks []*rlock.Lock) <-chan error {
			return locktest.Start(func() error {
				for range 20 {
					err := rlock.DoAll(t.Context(), locks, func(ctx context.Context) error {
						inside++
						locktest.Equal(t, "inside", inside, 1)
						time.Sleep(10 * time.Millisecond)
						for _, l := range locks {
							locktest.NoError(t, l.Check(ctx))
						}
						inside--
						return ctx.Err()
					})
					if err != nil {
						return err
					}
				}
				return nil
			})
		}
		one, two := both(named(a, "x", "y", "z")), both(named(b, "z", "y", "x", "z"))
		locktest.NoError(t, <-one)
		locktest.NoError(t, <-two)
		locktest.Sleep(time.Second)
		locktest.Equal(t, "keys", len(m.Keys()), 0)
	})
}

// The wait of DoAll is one budget for all locks. What was taken is released where one is not to be had.
func TestDoAllHasOneBudget(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		client := newClient(t, rdb)
		other := named(newClient(t, redistest.PipeClient(t, m)), "a", "b", "c")
		for _, l := range other[:2] {
			_ = acquire(t, t.Context(), l, rlock.Lease(2*time.Second))
		}
		keeps := acquire(t, t.Context(), other[2])
		began := time.Now()
		err := rlock.DoAll(t.Context(), named(client, "c", "b", "a"), func(context.Context) error {
			t.Error("fn runs")
			return nil
		}, rlock.Wait(5*time.Second))
		locktest.IsError(t, err, rlock.ErrNotAcquired)
		locktest.ErrorSays(t, err, `DoAll "c"`)
		locktest.Equal(t, "it took", time.Since(began), 5*time.Second)
		locktest.Equal(t, "a is taken", m.Exists("a"), false)
		locktest.Equal(t, "b is taken", m.Exists("b"), false)
		began = time.Now()
		locktest.IsError(t, rlock.DoAll(t.Context(), named(client, "a", "c"), func(context.Context) error { return nil }, rlock.Wait(0)), rlock.ErrNotAcquired)
		locktest.Equal(t, "without a wait it took", time.Since(began), 0)
		locktest.NoError(t, keeps.Unlock(t.Context()))
		locktest.NoError(t, rlock.DoAll(t.Context(), named(client, "a", "c"), func(context.Context) error {
			locktest.Equal(t, "the lease", m.TTL("c"), time.Minute)
			return nil
		}, rlock.Wait(0), rlock.Lease(time.Minute)))
	})
}

// The loss of any lock ends fn's context, and the error has fn's own and that of the Unlock, with the lock's name.
func TestDoAllLosesOne(t *testing.T) {
	for _, lost := range []string{"a", "b", "c"} {
		locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
			locks := named(newClient(t, rdb), "a", "b", "c")
			oops := errors.New("oops")
			ended := locktest.Start(func() error {
				return rlock.DoAll(t.Context(), locks, func(ctx context.Context) error {
					<-ctx.Done()
					locktest.IsError(t, ctx.Err(), rlock.ErrLost)
					return oops
				})
			})
			synctest.Wait()
			freed, err := locks[lost[0]-'a'].ForceUnlock(t.Context())
			locktest.NoError(t, err)
			locktest.Equal(t, "freed", freed, true)
			err = <-ended
			locktest.IsError(t, err, oops, rlock.ErrLost)
			locktest.ErrorSays(t, err, fmt.Sprintf("DoAll %q", lost))
			locktest.Equal(t, "keys", len(m.Keys()), 0)
		})
	}
}

// A lock that is given twice, or that the caller has already, is re-entered once. A panic releases all.
func TestDoAllWithTheSameLockTwice(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		client := newClient(t, rdb)
		l := rlock.NewLock(client, "a")
		held := take(t, l, t.Context())
		locktest.NoError(t, rlock.DoAll(held, append(named(client, "b", "a", "a"), l), func(ctx context.Context) error {
			count, err := l.HoldCount(ctx)
			locktest.Equal(t, "the hold count", count, 2)
			return err
		}))
		locktest.NoError(t, l.Unlock(held))
		defer func() {
			locktest.Equal(t, "the panic", recover(), any("oops"))
			locktest.Equal(t, "keys", len(m.Keys()), 0)
		}()
		_ = rlock.DoAll(t.Context(), named(client, "b", "a"), func(context.Context) error { panic("oops") })
	})
}

// Bad input is an error before Redis is asked.
func TestBadInputOfDoAll(t *testing.T) {
	rdb, l := newLock(t)
	other := rlock.NewLock(newClient(t, rdb), "l")
	spy := locktest.SpyOn(rdb)
	ran := 0
	fn := func(context.Context) error { ran++; return nil }
	locktest.ErrorSays(t, rlock.DoAll(t.Context(), []*rlock.Lock{l}, nil), "rlock: DoAll: fn is nil")
	locktest.ErrorSays(t, rlock.DoAll(t.Context(), []*rlock.Lock{l, nil}, fn), "rlock: DoAll: lock 1", "NewLock")
	locktest.ErrorSays(t, rlock.DoAll(t.Context(), []*rlock.Lock{l, other}, fn), `"l"`, "different clients")
	locktest.ErrorSays(t, rlock.DoAll(t.Context(), []*rlock.Lock{l}, fn, rlock.Wait(3)), `rlock: DoAll "l": wait 3ns`)
	locktest.Equal(t, "commands", spy.Commands(), 0)
	locktest.Equal(t, "fn ran", ran, 0)
	locktest.NoError(t, rlock.DoAll(t.Context(), nil, fn))
	locktest.Equal(t, "fn ran", ran, 1)
}
