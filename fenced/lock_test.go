package fenced_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/fencelock/fencelock/rlock"
)

const (
	soon     = 9 * time.Second
	tokenKey = "redisson_lock_token:{l}"
	channel  = "redisson_lock__channel:{l}"
)

func newClient(t testing.TB, rdb redis.UniversalClient) *rlock.Client {
	t.Helper()
	c, err := rlock.New(rdb)
	locktest.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// newLock returns a lock called "l" on a server of its own.
func newLock(t testing.TB, opts ...fenced.Option) (*redis.Client, *rlock.Client, *fenced.Lock) {
	t.Helper()
	rdb := redistest.New(t)
	c := newClient(t, rdb)
	return rdb, c, fenced.NewLock(c, "l", opts...)
}

// take acquires and requires this token.
func take(t testing.TB, l *fenced.Lock, ctx context.Context, want int64) context.Context {
	t.Helper()
	held, token, err := l.LockAndGetToken(ctx)
	locktest.NoError(t, err)
	locktest.Equal(t, "token", token, want)
	t.Cleanup(func() { runtime.KeepAlive(held) }) // a hold whose context is dropped is not renewed
	return held
}

// current requires that this is the holder's token, by every way to ask for it.
func current(t testing.TB, l *fenced.Lock, ctx context.Context, want int64) {
	t.Helper()
	token, err := l.Token(ctx)
	locktest.NoError(t, err)
	locktest.Equal(t, "Token", token, want)
	token, ok := fenced.TokenFrom(ctx, l.Name())
	locktest.Equal(t, "TokenFrom is there", ok, true)
	locktest.Equal(t, "TokenFrom", token, want)
}

// calls are all acquiring calls that return what they have taken.
var calls = []struct {
	name, op string
	waits    bool
	lease    time.Duration
	call     func(l *fenced.Lock, ctx context.Context) (context.Context, int64, error)
}{
	{"LockAndGetToken", "LockAndGetToken", true, 30 * time.Second, (*fenced.Lock).LockAndGetToken},
	{"LockLeaseAndGetToken", "LockLeaseAndGetToken", true, 7 * time.Minute, func(l *fenced.Lock, ctx context.Context) (context.Context, int64, error) {
		return l.LockLeaseAndGetToken(ctx, 7*time.Minute)
	}},
	{"TryLockAndGetToken 0 0", "TryLockAndGetToken", false, 30 * time.Second, func(l *fenced.Lock, ctx context.Context) (context.Context, int64, error) {
		return l.TryLockAndGetToken(ctx, 0, 0)
	}},
	{"TryLockAndGetToken wait lease", "TryLockAndGetToken", true, 7 * time.Minute, func(l *fenced.Lock, ctx context.Context) (context.Context, int64, error) {
		return l.TryLockAndGetToken(ctx, time.Minute, 7*time.Minute)
	}},
	{"Acquire", "Acquire", true, 30 * time.Second, acquired()},
	{"Acquire Lease", "Acquire", true, 7 * time.Minute, acquired(rlock.Lease(7 * time.Minute))},
	{"Acquire Wait 0 Lease", "Acquire", false, 7 * time.Minute, acquired(rlock.Wait(0), rlock.Lease(7*time.Minute))},
}

// acquired is Acquire for the holder of the context, as the other calls are.
func acquired(opts ...rlock.AcquireOption) func(*fenced.Lock, context.Context) (context.Context, int64, error) {
	return func(l *fenced.Lock, ctx context.Context) (context.Context, int64, error) {
		h, err := l.Acquire(ctx, append(opts, rlock.Reenter())...)
		if err != nil {
			return ctx, 0, err
		}
		return h.Context(), h.Token(), nil
	}
}

// Inv2: every acquire, by every call, of two clients in turn, has the next token: 1, 2, 3 and so on; re-entry too (P9).
func TestTokensGrow(t *testing.T) {
	rdb, first, _ := newLock(t)
	second := newClient(t, rdb)
	ctx := t.Context()
	want := int64(0)
	for i, c := range calls {
		t.Run(c.name, func(t *testing.T) {
			l, other := fenced.NewLock(first, "l"), fenced.NewLock(second, "l")
			if i%2 == 1 {
				l, other = other, l
			}
			want++
			began := time.Now()
			held, token, err := c.call(l, ctx)
			locktest.NoError(t, err)
			locktest.Equal(t, "token", token, want)
			current(t, l, held, want)
			locktest.Equal(t, "counter", rdb.Get(ctx, tokenKey).Val(), fmt.Sprint(want))
			if ttl := rdb.PTTL(ctx, "l").Val(); ttl > c.lease || ttl < c.lease-time.Since(began)-time.Millisecond {
				t.Errorf("the key lives for %v, want %v", ttl, c.lease)
			}
			for _, l := range []*fenced.Lock{l, other} {
				got, token, err := l.TryLockAndGetToken(ctx, 0, 0)
				locktest.IsError(t, err, rlock.ErrNotAcquired)
				locktest.Equal(t, "token", token, 0)
				locktest.Equal(t, "context", got, ctx)
				for wait := 20 * time.Millisecond; ; wait *= 2 { // Redis may be slow to answer
					_, _, err = l.TryLockAndGetToken(ctx, wait, 0)
					if err == nil || !strings.Contains(err.Error(), "no answer") || wait > soon {
						break
					}
				}
				locktest.IsError(t, err, rlock.ErrNotAcquired)
			}
			want++
			inner, token, err := c.call(l, held)
			locktest.NoError(t, err)
			locktest.Equal(t, "token of the re-entry", token, want)
			current(t, l, inner, want)
			current(t, l, held, want) // a holder's current token is its latest
			locktest.NoError(t, l.Unlock(inner))
			current(t, l, held, want)
			if c.waits {
				next := make(chan error, 1)
				want++
				token := want
				go func() {
					held, got, err := c.call(other, ctx)
					if err == nil && got != token {
						err = fmt.Errorf("token %d, want %d", got, token)
					}
					if err == nil {
						err = other.Unlock(held)
					}
					next <- err
				}()
				redistest.Eventually(t, soon, func() bool { return rdb.PubSubNumSub(ctx, channel).Val()[channel] > 0 }, "the other waits")
				locktest.NoError(t, l.Unlock(held))
				locktest.NoError(t, redistest.Await(t, soon, next, "the other gets the lock"))
				return
			}
			locktest.NoError(t, l.Unlock(held))
		})
	}
}

// Inv2: tokens follow the order in which the lock was had, among many goroutines of two clients.
func TestTokensFollowTheOrder(t *testing.T) {
	rdb, first, _ := newLock(t)
	clients := []*rlock.Client{first, newClient(t, rdb)}
	var mu sync.Mutex
	var order []int64
	var workers sync.WaitGroup
	for i := range 6 {
		l := fenced.NewLock(clients[i%2], "l")
		workers.Go(func() {
			for range 5 {
				if err := l.Do(t.Context(), func(_ context.Context, token int64) error {
					mu.Lock()
					defer mu.Unlock()
					order = append(order, token)
					return nil
				}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	workers.Wait()
	for i, token := range order {
		locktest.Equal(t, "token", token, int64(i+1))
	}
	locktest.Equal(t, "acquires", len(order), 30)
}

// Inv12: bad arguments fail before Redis is asked, with the method's own name.
func TestBadArguments(t *testing.T) {
	rdb, c, l := newLock(t)
	ctx := t.Context()
	locktest.NoError(t, rdb.Close()) // whoever asks says so
	never := func(context.Context, int64) error { t.Error("fn ran"); return nil }
	nameless, clientless := fenced.NewLock(c, ""), fenced.NewLock(nil, "l")
	for _, c := range []struct {
		op, says string
		call     func() (context.Context, int64, error)
	}{
		{"TryLockAndGetToken", "negative", func() (context.Context, int64, error) { return l.TryLockAndGetToken(ctx, -1, 0) }},
		{"Acquire", "negative", func() (context.Context, int64, error) {
			_, err := l.Acquire(ctx, rlock.Wait(-time.Second))
			return ctx, 0, err
		}},
		{"Do", "negative", func() (context.Context, int64, error) { return ctx, 0, l.Do(ctx, never, rlock.Wait(-1)) }},
		{"Do", "lease", func() (context.Context, int64, error) {
			return ctx, 0, l.Do(ctx, never, rlock.Wait(0), rlock.Lease(5*time.Millisecond))
		}},
		{"LockLeaseAndGetToken", "lease", func() (context.Context, int64, error) { return l.LockLeaseAndGetToken(ctx, 5*time.Millisecond) }},
		{"LockLeaseAndGetToken", "lease", func() (context.Context, int64, error) { return l.LockLeaseAndGetToken(ctx, -1) }},
		{"TryLockAndGetToken", "lease", func() (context.Context, int64, error) { return l.TryLockAndGetToken(ctx, 0, 101*365*24*time.Hour) }},
		{"LockAndGetToken", "name", func() (context.Context, int64, error) { return nameless.LockAndGetToken(ctx) }},
		{"LockAndGetToken", "client", func() (context.Context, int64, error) { return clientless.LockAndGetToken(ctx) }},
		{"Do", "client", func() (context.Context, int64, error) { return ctx, 0, clientless.Do(ctx, never) }},
	} {
		got, token, err := c.call()
		var e *rlock.Error
		if !errors.As(err, &e) || e.Op != c.op || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: error %v, want an *Error that says %q", c.op, err, c.says)
		}
		locktest.Equal(t, c.op+": context", got, ctx)
		locktest.Equal(t, c.op+": token", token, 0)
	}
}

// Do hands fn the token of their acquire, unlocks after it, and tells the truth (P12).
func TestDo(t *testing.T) {
	rdb, _, l := newLock(t)
	for i, do := range []func(context.Context, func(context.Context, int64) error) error{
		func(ctx context.Context, fn func(context.Context, int64) error) error { return l.Do(ctx, fn) },
		func(ctx context.Context, fn func(context.Context, int64) error) error {
			return l.Do(ctx, fn, rlock.Wait(time.Second), rlock.Lease(10*time.Second))
		},
	} {
		base := int64(4 * i)
		locktest.NoError(t, do(t.Context(), func(ctx context.Context, token int64) error {
			locktest.Equal(t, "token", token, base+1)
			current(t, l, ctx, base+1)
			return do(ctx, func(ctx context.Context, token int64) error {
				locktest.Equal(t, "token inside", token, base+2)
				return nil
			})
		}))
		failed := errors.New("fn failed")
		locktest.IsError(t, do(t.Context(), func(context.Context, int64) error { return failed }), failed)
		err := do(t.Context(), func(ctx context.Context, token int64) error {
			_, err := l.ForceUnlock(ctx)
			locktest.NoError(t, err)
			return failed
		})
		locktest.IsError(t, err, failed, rlock.ErrLost)
		is, err := l.IsLocked(t.Context())
		locktest.NoError(t, err)
		locktest.Equal(t, "locked", is, false)
	}
	locktest.Equal(t, "counter", rdb.Get(t.Context(), tokenKey).Val(), "8")

	held := take(t, l, t.Context(), 9)
	locktest.IsError(t, l.Do(t.Context(), func(context.Context, int64) error { t.Error("fn ran"); return nil }, rlock.Wait(0)), rlock.ErrNotAcquired)
	locktest.NoError(t, l.Unlock(held))
}

// The methods that fenced.Lock forwards.
func TestForwarded(t *testing.T) {
	_, _, l := newLock(t)
	ctx := t.Context()
	locktest.Equal(t, "name", l.Name(), "l")
	state := func(ctx context.Context, locked, held bool, count int) {
		t.Helper()
		is, err := l.IsLocked(ctx)
		locktest.NoError(t, err)
		locktest.Equal(t, "IsLocked", is, locked)
		is, err = l.IsHeld(ctx)
		locktest.NoError(t, err)
		locktest.Equal(t, "IsHeld", is, held)
		n, err := l.HoldCount(ctx)
		locktest.NoError(t, err)
		locktest.Equal(t, "HoldCount", n, count)
		ttl, err := l.TTL(ctx)
		locktest.NoError(t, err)
		locktest.Equal(t, "TTL", ttl > 0, locked)
	}
	state(ctx, false, false, 0)
	held := take(t, l, ctx, 1)
	inner := take(t, l, held, 2)
	state(ctx, true, false, 0)
	state(inner, true, true, 2)
	locktest.NoError(t, l.Check(held))
	locktest.IsError(t, l.Check(ctx), rlock.ErrNotHeld)
	freed, err := l.ForceUnlock(ctx)
	locktest.NoError(t, err)
	locktest.Equal(t, "freed", freed, true)
	locktest.IsError(t, l.Check(held), rlock.ErrLost)
	locktest.IsError(t, l.Unlock(inner), rlock.ErrLost)
	locktest.IsError(t, l.Unlock(held), rlock.ErrLost)
	locktest.IsError(t, l.Unlock(held), rlock.ErrNotHeld)
	take(t, l, ctx, 3) // larger than that of the one that was forced out
}
