package rlock_test

import (
	"context"
	"io"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/fencelock/fencelock/rlock"
)

// forgetsTheRelease takes the lock, unlocks it, and puts back what Redis had while it was held, as a master has it that takes over and has
// not heard of the release.
func forgetsTheRelease(t *testing.T, m *miniredis.Miniredis, l *rlock.Lock) {
	held := take(t, l, t.Context())
	fields, err := m.HKeys(l.Name())
	locktest.NoError(t, err)
	locktest.NoError(t, l.Unlock(held))
	m.HSet(l.Name(), fields[0], "1", fields[0]+"#", "0")
	m.SetTTL(l.Name(), 30*time.Second)
}

// P38: a hold that is over, and that Redis has all the same, keeps its own client from the lock for no longer than it takes to release it.
func TestP38_AHoldThatIsOverIsReleasedByItsClient(t *testing.T) {
	for name, acquire := range map[string]func(*rlock.Lock, context.Context) (context.Context, error){
		"Lock":    (*rlock.Lock).Lock,
		"one try": func(l *rlock.Lock, ctx context.Context) (context.Context, error) { return l.TryLock(ctx, 0, 0) },
	} {
		t.Run(name, func(t *testing.T) {
			locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
				c := newClient(t, rdb)
				l := rlock.NewLock(c, "l")
				forgetsTheRelease(t, m, l)
				began := time.Now()
				held, err := acquire(l, t.Context())
				locktest.NoError(t, err)
				if took := time.Since(began); took > 100*time.Millisecond {
					t.Errorf("P38: the lock was had after %v", took)
				}
				locktest.NoError(t, l.Unlock(held))
				wantFree(t, m, time.Second, c)
			})
		})
	}
}

// P38: a hold of the same client that is there is never released, whoever of the client asks: with the answer of a call that has just got
// the lock still on its way, while a hold is being handed on, and when the client asks for all that it has released lately.
func TestP38_AHoldThatIsThereStays(t *testing.T) {
	t.Run("held", func(t *testing.T) {
		locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
			broken := breakable(rdb)
			c := newClient(t, rdb)
			l := rlock.NewLock(c, "l")
			locktest.NoError(t, l.Unlock(take(t, l, t.Context())))
			held := take(t, l, t.Context())
			for range 3 {
				_, err := l.TryLock(t.Context(), 0, 0)
				locktest.IsError(t, err, rlock.ErrNotAcquired)
				_, err = l.TryLock(t.Context(), 3*time.Second, 0)
				locktest.IsError(t, err, rlock.ErrNotAcquired)
				broken.Store(true)
				other := rlock.NewLock(c, "other")
				locktest.NoError(t, other.Unlock(take(t, other, t.Context())))
				locktest.Sleep(3 * time.Second)
			}
			locktest.NoError(t, l.Check(held))
			wantLocked(t, l, true)
			locktest.NoError(t, l.Unlock(held))
			wantFree(t, m, time.Minute, c)
		})
	})
	for name, wait := range map[string]time.Duration{"one try": 0, "a waiter": time.Minute} {
		t.Run("the answer to "+name+" is on its way", func(t *testing.T) {
			locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
				c := newClient(t, rdb)
				l := rlock.NewLock(c, "l")
				for _, wait := range []time.Duration{0, time.Minute} { // the server knows the scripts
					held, err := l.TryLock(t.Context(), wait, 0)
					locktest.NoError(t, err)
					locktest.NoError(t, l.Unlock(held))
				}
				var slow atomic.Bool
				slow.Store(true)
				locktest.SpyOn(rdb).Wrap(func(_ []string, next func() error) error {
					if slow.Swap(false) {
						defer time.Sleep(500 * time.Millisecond)
					}
					return next()
				})
				one := locktest.StartLock(func() (context.Context, error) { return l.TryLock(t.Context(), wait, 0) })
				locktest.Sleep(100 * time.Millisecond)
				for _, wait := range []time.Duration{0, 200 * time.Millisecond} {
					if _, err := l.TryLock(t.Context(), wait, 0); err == nil {
						t.Fatal("P38: a hold was released whose call has not heard of it yet")
					}
					wantLocked(t, l, true)
				}
				got := <-one
				locktest.NoError(t, got.Err)
				locktest.NoError(t, l.Unlock(got.Ctx))
				wantFree(t, m, time.Second, c)
			})
		})
	}
}

// P38: others wait for a hold that is over until its client sees that the server may be another one, and not for its lease.
func TestP38_OthersGetTheLock(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		broken := breakable(rdb)
		c := newClient(t, rdb)
		var locks []*rlock.Lock
		for _, name := range []string{"a", "b", "c", "d"} {
			locks = append(locks, rlock.NewLock(c, name))
			forgetsTheRelease(t, m, locks[len(locks)-1])
		}
		two := newClient(t, redistest.PipeClient(t, m))
		broken.Store(true)
		began := time.Now()
		locktest.NoError(t, locks[0].Unlock(take(t, locks[0], t.Context()))) // a connection has ended
		for _, l := range locks {
			theirs := rlock.NewLock(two, l.Name())
			locktest.NoError(t, theirs.Unlock(take(t, theirs, t.Context())))
		}
		if took := time.Since(began); took > 500*time.Millisecond {
			t.Errorf("P38: others have had the locks after %v", took)
		}
		wantFree(t, m, time.Minute, c, two)
	})
}

// P38: a release that the server before has confirmed after the first sign of another one is asked for too.
func TestP38_AReleaseAfterTheFirstSign(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		broken := breakable(rdb)
		c, two := newClient(t, rdb), newClient(t, redistest.PipeClient(t, m))
		l, other, theirs := rlock.NewLock(c, "l"), rlock.NewLock(c, "other"), rlock.NewLock(two, "l")
		broken.Store(true)
		locktest.NoError(t, other.Unlock(take(t, other, t.Context())))
		locktest.Sleep(time.Second)
		forgetsTheRelease(t, m, l)
		began := time.Now()
		locktest.NoError(t, theirs.Unlock(take(t, theirs, t.Context())))
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("P38: another client has had the lock after %v", took)
		}
		wantFree(t, m, time.Minute, c, two)
	})
}

// P38: a server that has answered is replaced by one that has not heard of a release from before that.
func TestP38_TwoServersOneAfterTheOther(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		broken := breakable(rdb)
		c, two := newClient(t, rdb), newClient(t, redistest.PipeClient(t, m))
		l, other, theirs := rlock.NewLock(c, "l"), rlock.NewLock(c, "other"), rlock.NewLock(two, "l")
		held := take(t, l, t.Context())
		fields, err := m.HKeys("l")
		locktest.NoError(t, err)
		locktest.NoError(t, l.Unlock(held))
		broken.Store(true)
		locktest.NoError(t, other.Unlock(take(t, other, t.Context())))
		locktest.Sleep(3 * time.Second) // the first server was asked twice
		m.HSet("l", fields[0], "1")
		m.SetTTL("l", 30*time.Second)
		broken.Store(true)
		began := time.Now()
		locktest.NoError(t, other.Unlock(take(t, other, t.Context())))
		locktest.NoError(t, theirs.Unlock(take(t, theirs, t.Context())))
		if took := time.Since(began); took > 500*time.Millisecond {
			t.Errorf("P38: another client has had the lock after %v", took)
		}
		wantFree(t, m, time.Minute, c, two)
	})
}

// breakable returns a switch: set, it lets the next command that is sent find a connection that its server has ended.
func breakable(rdb *redis.Client) *atomic.Bool {
	broken := new(atomic.Bool)
	locktest.SpyOn(rdb).Wrap(func(_ []string, next func() error) error {
		if broken.Swap(false) {
			return io.EOF
		}
		return next()
	})
	return broken
}
