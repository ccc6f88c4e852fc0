package rlock_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/fencelock/fencelock/rlock"
)

// What contexts of holds and of holders keep to as contexts.

// A context that has ended says the same from then on, as any context does, also when its lock is unlocked after that.
func TestErrStaysTheSame(t *testing.T) {
	for name, end := range map[string]func(t *testing.T, c *rlock.Client, l *rlock.Lock, cancel context.CancelCauseFunc){
		"lost": func(t *testing.T, _ *rlock.Client, l *rlock.Lock, _ context.CancelCauseFunc) {
			_, err := l.ForceUnlock(t.Context())
			locktest.NoError(t, err)
		},
		"closed": func(t *testing.T, c *rlock.Client, _ *rlock.Lock, _ context.CancelCauseFunc) {
			locktest.NoError(t, c.Close())
		},
		"cancelled": func(_ *testing.T, _ *rlock.Client, _ *rlock.Lock, cancel context.CancelCauseFunc) {
			cancel(errors.New("the user's reason"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
				c := newClient(t, rdb)
				l := rlock.NewLock(c, "l")
				user, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				held := take(t, l, user)
				end(t, c, l, cancel)
				<-held.Done()
				err, cause := held.Err(), context.Cause(held)
				if err == nil || errors.Is(err, rlock.ErrUnlocked) {
					t.Fatalf("it has ended with %v", err)
				}
				_ = l.Unlock(held)
				if held.Err() != err || context.Cause(held) != cause {
					t.Errorf("it has ended with %v, cause %v, and says later %v, cause %v", err, cause, held.Err(), context.Cause(held))
				}
			})
		})
	}
}

// watchedContext is a user's context of a type of its own, which does not end, and knows who wants to be told of its end.
type watchedContext struct {
	context.Context
	done chan struct{}

	mu       sync.Mutex
	watchers map[int]func()
	last     int
}

func (c *watchedContext) Done() <-chan struct{} { return c.done }
func (c *watchedContext) Err() error            { return nil }

// AfterFunc is what context.AfterFunc calls of such a type.
func (c *watchedContext) AfterFunc(f func()) (stop func() bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last++
	n := c.last
	c.watchers[n] = f
	return func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		_, there := c.watchers[n]
		delete(c.watchers, n)
		return there
	}
}

func (c *watchedContext) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.watchers)
}

// Inv9: a caller's context above a holder's, which may live as long as the process, keeps nothing of a hold after its Unlock.
func TestInv9_NothingIsLeftInTheCallersContext(t *testing.T) {
	_, l := newLock(t)
	ctx := &watchedContext{Context: rlock.NewHolder(t.Context()), done: make(chan struct{}), watchers: map[int]func(){}}
	for range 3 {
		held := take(t, l, ctx)
		locktest.Equal(t, "who wants to be told while it is held", ctx.count(), 1)
		locktest.NoError(t, l.Unlock(held))
		locktest.Equal(t, "who wants to be told after the Unlock", ctx.count(), 0)
	}
}

// P11: a lock that was taken below context.WithoutCancel does not end with the context above that, nor does one that was taken inside it,
// whatever is unlocked first.
func TestP11_WithoutCancelEndsTheReachOfAContext(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		client := newClient(t, rdb)
		a, b, c := rlock.NewLock(client, "a"), rlock.NewLock(client, "b"), rlock.NewLock(client, "c")
		user, cancel := context.WithCancel(t.Context())
		inA := take(t, a, user)
		inB := take(t, b, context.WithoutCancel(inA))
		inC := take(t, c, inB)
		locktest.NoError(t, b.Unlock(inB))
		locktest.NoError(t, a.Unlock(inA))
		cancel()
		locktest.NoError(t, c.Check(inC))
		locktest.Sleep(5 * time.Minute)
		locktest.NoError(t, c.Check(inC))
		locktest.NoError(t, c.Unlock(inC))
	})
}

// NewHolder's doc: the new context ends with the context below the outermost hold, with its cause; one that was made below
// context.WithoutCancel does not end.
func TestBehaviourNewHolderOfADetachedContext(t *testing.T) {
	_, l := newLock(t)
	why := errors.New("the user's reason")
	user, cancel := context.WithCancelCause(t.Context())
	held := take(t, l, user)
	attached, plain, detached := rlock.NewHolder(held), rlock.NewHolder(user), rlock.NewHolder(context.WithoutCancel(held))
	cancel(why)
	for _, ctx := range []context.Context{attached, plain} {
		locktest.IsError(t, ctx.Err(), context.Canceled)
		locktest.Equal(t, "cause", context.Cause(ctx), why)
	}
	locktest.NoError(t, detached.Err())
	locktest.NoError(t, l.Unlock(held))
}

// A context can be printed, at any time: it shows what it is, and nothing that others change.
func TestBehaviourContextsAreShown(t *testing.T) {
	_, l := newLock(t)
	ctx := rlock.NewHolder(t.Context())
	held := take(t, l, ctx)
	locktest.Equal(t, "a hold's context", fmt.Sprint(held), "rlock hold of l")
	locktest.Equal(t, "a holder's context", fmt.Sprint(ctx), "rlock.NewHolder")
	locktest.NoError(t, l.Unlock(held))
}

// A context may carry holds of two clients, each with a lock of this name on a Redis of its own: each Lock knows its own client's hold, and
// no other.
func TestLocksOfTwoClients(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		m2, rdb2 := redistest.Pipe(t)
		one, two := rlock.NewLock(newClient(t, rdb), "l"), rlock.NewLock(newClient(t, rdb2), "l")
		who := rlock.NewHolder(t.Context())
		held := take(t, one, who)
		for name, ctx := range map[string]context.Context{"the hold's context": held, "the holder's context": who} {
			t.Log(name)
			locktest.IsError(t, two.Unlock(ctx), rlock.ErrNotHeld)
			locktest.IsError(t, two.Check(ctx), rlock.ErrNotHeld)
			wantHolds(t, two, ctx, 0)
			wantHolds(t, one, ctx, 1)
		}
		both := take(t, two, held)
		locktest.Equal(t, "the second server has the lock", m2.Exists("l"), true)
		wantHolds(t, one, both, 1)
		wantHolds(t, two, both, 1)
		locktest.NoError(t, one.Unlock(both))
		locktest.Equal(t, "the first server has the lock", m.Exists("l"), false)
		locktest.Equal(t, "the second server has the lock", m2.Exists("l"), true)
		locktest.NoError(t, two.Check(both))
		locktest.NoError(t, two.Unlock(both))
		locktest.Equal(t, "the second server has the lock", m2.Exists("l"), false)
		locktest.Sleep(time.Second)
	})
}
