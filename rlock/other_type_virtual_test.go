package rlock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/rlock"
)

// lostToAString requires that err says that the hold is lost, and what Redis has said.
func lostToAString(t *testing.T, err error) {
	t.Helper()
	locktest.IsError(t, err, rlock.ErrLost)
	locktest.ErrorSays(t, err, "WRONGTYPE")
}

// A hold at whose key another library has put a string is lost, of every kind of lock: whatever asks Redis first says so, with Redis's words.
func TestHoldsLostToAString(t *testing.T) {
	for kind, c := range map[string]struct {
		key  string
		take func(c *rlock.Client, ctx context.Context) (*fenced.Hold, error)
	}{
		"a lock": {"l", func(c *rlock.Client, ctx context.Context) (*fenced.Hold, error) {
			return fenced.NewLock(c, "l").Acquire(ctx)
		}},
		"a permit": {"{l}:0", func(c *rlock.Client, ctx context.Context) (*fenced.Hold, error) {
			p, err := fenced.NewSemaphore(c, "l", 2).Acquire(ctx)
			return p, err
		}},
		"a read lock": {"l", func(c *rlock.Client, ctx context.Context) (*fenced.Hold, error) {
			return fenced.NewRWLock(c, "l").Read().Acquire(ctx)
		}},
		"a write lock": {"l", func(c *rlock.Client, ctx context.Context) (*fenced.Hold, error) {
			return fenced.NewRWLock(c, "l").Write().Acquire(ctx)
		}},
	} {
		for what, ask := range map[string]func(t *testing.T, h *fenced.Hold) error{
			"Unlock": func(t *testing.T, h *fenced.Hold) error { return h.Unlock(t.Context()) },
			"Extend": func(t *testing.T, h *fenced.Hold) error {
				err := h.Extend(t.Context(), time.Hour)
				lostToAString(t, h.Err())
				lostToAString(t, h.Unlock(t.Context()))
				return err
			},
			"a renewal": func(t *testing.T, h *fenced.Hold) error {
				locktest.Sleep(11 * time.Second)
				lostToAString(t, h.Unlock(t.Context()))
				return context.Cause(h.Context())
			},
		} {
			t.Run(kind+", "+what, func(t *testing.T) {
				locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
					client := newClient(t, rdb)
					h, err := c.take(client, t.Context())
					locktest.NoError(t, err)
					locktest.Sleep(time.Second)
					m.Del(c.key)
					locktest.NoError(t, m.Set(c.key, "somebody else's"))
					err = ask(t, h)
					lostToAString(t, err)
					var said redis.Error
					locktest.Equal(t, "Redis has said so", errors.As(err, &said), true)
					if h.Err() == nil {
						t.Error("the hold goes on")
					}
					locktest.Sleep(time.Minute)
					locktest.Equal(t, "books", client.Books(), "")
					there, err := m.Get(c.key)
					locktest.NoError(t, err)
					locktest.Equal(t, "what is there", there, "somebody else's")
				})
			})
		}
	}
}

// So it is for the levels of a hold: an inner Unlock and a re-entry end all of them.
func TestLevelsLostToAString(t *testing.T) {
	for what, ask := range map[string]func(l *rlock.Lock, inner context.Context) error{
		"an inner Unlock": func(l *rlock.Lock, inner context.Context) error { return l.Unlock(inner) },
		"a re-entry":      func(l *rlock.Lock, inner context.Context) error { _, err := l.Lock(inner); return err },
	} {
		t.Run(what, func(t *testing.T) {
			locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
				l := rlock.NewLock(newClient(t, rdb), "l")
				outer := take(t, l, t.Context())
				inner := take(t, l, outer)
				m.Del("l")
				locktest.NoError(t, m.Set("l", "somebody else's"))
				lostToAString(t, ask(l, inner))
				lostToAString(t, context.Cause(outer))
				lostToAString(t, l.Check(outer))
				lostToAString(t, l.Unlock(outer))
			})
		})
	}
}

// A re-entry that takes a token may fail as the counter is something else: the hold goes on. Where it is the lock, the hold is lost a moment later.
func TestReentryWithATokenAndAString(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		l := fenced.NewLock(newClient(t, rdb), "l")
		held, _, err := l.LockAndGetToken(t.Context())
		locktest.NoError(t, err)
		counter := "redisson_lock_token:{l}"
		m.Del(counter)
		_, err = m.Lpush(counter, "x")
		locktest.NoError(t, err)
		_, _, err = l.LockAndGetToken(held)
		locktest.ErrorSays(t, err, "WRONGTYPE")
		locktest.IsNotError(t, err, rlock.ErrLost)
		locktest.Sleep(time.Minute)
		locktest.NoError(t, l.Check(held))
		m.Del("l")
		locktest.NoError(t, m.Set("l", "somebody else's"))
		_, _, err = l.LockAndGetToken(held)
		locktest.ErrorSays(t, err, "WRONGTYPE")
		locktest.Sleep(100 * time.Millisecond)
		lostToAString(t, l.Check(held))
		lostToAString(t, l.Unlock(held))
	})
}
