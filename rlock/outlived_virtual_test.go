package rlock_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/rlock"
)

// outlivedText is what Check, Token and a later ErrLost say of a context that has ended.
const outlivedText = "the context that the lock was taken with has ended"

// Inv11: ctx bounds the hold. A helper that ends the context that it has taken the lock with is told so by Check, as long
// as the lease lasts, and by what is lost later; the lock is not lost before that, and Unlock releases it.
func TestHelperThatEndsItsContext(t *testing.T) {
	mine := errors.New("of my own")
	for name, c := range map[string]struct {
		take func(ctx context.Context, l *fenced.Lock) (context.Context, error)
		is   []error
	}{
		"a timeout, cancelled": {func(ctx context.Context, l *fenced.Lock) (context.Context, error) {
			ctx, cancel := context.WithTimeout(ctx, time.Hour)
			defer cancel()
			return locktest.NoToken(l.LockAndGetToken(ctx))
		}, []error{context.Canceled}},
		"a timeout that is over": {func(ctx context.Context, l *fenced.Lock) (context.Context, error) {
			ctx, cancel := context.WithTimeout(ctx, time.Second)
			t.Cleanup(cancel)
			defer time.Sleep(2 * time.Second)
			return locktest.NoToken(l.LockAndGetToken(ctx))
		}, []error{context.DeadlineExceeded}},
		"a cause": {func(ctx context.Context, l *fenced.Lock) (context.Context, error) {
			ctx, cancel := context.WithCancelCause(ctx)
			defer cancel(mine)
			return locktest.NoToken(l.LockAndGetToken(ctx))
		}, []error{context.Canceled, mine}},
		"above a holder": {func(ctx context.Context, l *fenced.Lock) (context.Context, error) {
			ctx, cancel := context.WithCancel(rlock.NewHolder(ctx))
			defer cancel()
			return locktest.NoToken(l.LockAndGetToken(ctx))
		}, []error{context.Canceled}},
	} {
		t.Run(name, func(t *testing.T) {
			locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
				l := fenced.NewLock(newClient(t, rdb), "l")
				says := func(err error, targets ...error) {
					t.Helper()
					locktest.IsError(t, err, targets...)
					if !strings.Contains(err.Error(), outlivedText) {
						t.Errorf("%v does not name the context", err)
					}
				}
				held, err := c.take(t.Context(), l)
				locktest.NoError(t, err)
				locktest.Sleep(time.Millisecond) // the end of a context is passed on by a goroutine
				for _, ctx := range []context.Context{held, context.WithoutCancel(held)} {
					says(l.Check(ctx), c.is...)
					locktest.IsNotError(t, l.Check(ctx), rlock.ErrLost)
					_, err := l.Token(ctx)
					says(err, c.is...)
				}
				locktest.Sleep(20 * time.Second)
				locked, err := l.IsLocked(t.Context())
				locktest.NoError(t, err)
				locktest.Equal(t, "locked after 20 s of 30", locked, true)
				locktest.NoError(t, l.Unlock(held))

				held, err = c.take(t.Context(), l)
				locktest.NoError(t, err)
				locktest.Sleep(time.Minute)
				says(l.Check(held), rlock.ErrLost)
				says(l.Unlock(held), rlock.ErrLost)
			})
		})
	}
}

// Inv12: a hold with a level that was renewed until Redis was away is lost for that, and says so, also where another level's context has ended
// before. The log says how it was lost, and what the last renewal heard.
func TestInv12_LostBesideALevelThatEnded(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		var log locktest.Log
		l := rlock.NewLock(newClient(t, rdb, rlock.WithLogger(log.Logger())), "l")
		outer := take(t, l, t.Context())
		within, cancel := context.WithCancel(outer)
		inner := take(t, l, within)
		cancel()
		locktest.Sleep(time.Millisecond)
		spy := locktest.SpyOn(rdb)
		spy.Wrap(func(ops []string, next func() error) error {
			if slices.Contains(ops, "renew") {
				return errors.New("no renewals today")
			}
			return next()
		})
		<-outer.Done()
		locktest.Sleep(time.Millisecond) // for the log
		spy.Wrap(nil)
		cause := context.Cause(outer)
		locktest.IsError(t, cause, rlock.ErrLost)
		locktest.ErrorSays(t, cause, "the lease ran out", "no renewals today")
		if strings.Contains(cause.Error(), outlivedText) {
			t.Errorf("it was renewed until the end, and says %v", cause)
		}
		lines := log.With("rlock: lock lost")
		if len(lines) != 1 || !strings.Contains(lines[0], "the lease ran out") || !strings.Contains(lines[0], "last renewal=") || !strings.Contains(lines[0], "no renewals today") {
			t.Errorf("the log has %q", lines)
		}
		locktest.IsError(t, l.Unlock(inner), rlock.ErrLost)
		locktest.IsError(t, l.Unlock(outer), rlock.ErrLost)
	})
}

// Inv12: a hold of a closed client whose lease is over is lost, says that, and needs no Redis to say it. The contexts go on saying that the
// client was closed.
func TestInv12_LostAfterClose(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		c := newClient(t, rdb)
		l := rlock.NewLock(c, "l")
		held := take(t, l, t.Context())
		ended := held.Done()
		locktest.NoError(t, c.Close())
		<-ended
		locktest.IsError(t, l.Check(held), rlock.ErrClosed)
		locktest.Sleep(31 * time.Second)
		err := l.Check(held)
		locktest.IsError(t, err, rlock.ErrLost)
		locktest.ErrorSays(t, err, "the lease ran out")
		if strings.Contains(err.Error(), outlivedText) {
			t.Errorf("no context of the caller's has ended, and it says %v", err)
		}
		m.SetError("ERR away")
		locktest.IsError(t, l.Unlock(held), rlock.ErrLost)
		m.SetError("")
		locktest.IsError(t, held.Err(), rlock.ErrClosed)
	})
}

// The inner context's end is not the outer level's, which goes on being renewed; an outer lock's Unlock ends nothing.
func TestOnlyTheLevelsOwnContext(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		c := newClient(t, rdb)
		a, b := rlock.NewLock(c, "a"), rlock.NewLock(c, "b")
		outer := take(t, a, t.Context())
		within, cancel := context.WithCancel(outer)
		inner := take(t, a, within)
		cancel()
		locktest.Sleep(time.Millisecond)
		locktest.IsError(t, a.Check(inner), context.Canceled)
		locktest.Sleep(5 * time.Minute)
		locktest.NoError(t, a.Check(outer))
		locktest.NoError(t, a.Unlock(inner))

		other := take(t, b, outer)
		locktest.NoError(t, a.Unlock(outer))
		locktest.NoError(t, b.Check(other))
		locktest.Sleep(5 * time.Minute)
		locktest.NoError(t, b.Check(other))
		locktest.NoError(t, b.Unlock(other))

		// A lease of the caller's ends as it was asked for, whatever has ended before.
		ctx, end := context.WithCancel(t.Context())
		held, err := a.LockLease(ctx, time.Second)
		locktest.NoError(t, err)
		end()
		locktest.Sleep(time.Minute)
		if err := a.Check(held); !errors.Is(err, rlock.ErrLost) || strings.Contains(err.Error(), outlivedText) {
			t.Errorf("after a lease of its own: %v", err)
		}
	})
}
