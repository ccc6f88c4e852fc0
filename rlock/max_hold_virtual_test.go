package rlock_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/fencelock/fencelock/rlock"
)

// P57: a hold with MaxHold is renewed until then, and no longer. Its context ends, and the first who waits has the lock at once,
// of the same client and of another one, whatever the holder does. Its Unlock says that it was lost.
func TestP57_MaxHold(t *testing.T) {
	for name, c := range map[string]struct {
		take  func(t *testing.T, c *rlock.Client, opts ...rlock.AcquireOption) *fenced.Hold
		local int // of rlock.WithLocalHandoffs
	}{
		"a lock":          {take: takeFenced},
		"local handoffs":  {take: takeFenced, local: 8},
		"the only permit": {take: takeOnlyPermit},
		"a write lock":    {take: takeToWrite},
	} {
		for _, sameClient := range []bool{true, false} {
			t.Run(name, func(t *testing.T) {
				locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
					client := newClient(t, rdb, rlock.WithLocalHandoffs(c.local))
					other := client
					if !sameClient {
						other = newClient(t, redistest.PipeClient(t, m), rlock.WithLocalHandoffs(c.local))
					}
					began := time.Now()
					h := c.take(t, client, rlock.MaxHold(5*time.Minute))
					got := make(chan *fenced.Hold)
					go func() { got <- c.take(t, other, rlock.MaxHold(time.Minute)) }()
					locktest.Sleep(5*time.Minute - time.Millisecond)
					locktest.NoError(t, h.Err())
					next := <-got
					locktest.Equal(t, "the next has it after", time.Since(began), 5*time.Minute)
					locktest.IsError(t, h.Err(), rlock.ErrLost, rlock.ErrMaxHold, context.Canceled)
					locktest.IsError(t, context.Cause(h.Context()), rlock.ErrMaxHold)
					if next.Token() <= h.Token() {
						t.Errorf("token %d after %d", next.Token(), h.Token())
					}
					locktest.IsError(t, h.Extend(t.Context(), time.Hour), rlock.ErrMaxHold)
					locktest.IsError(t, h.Unlock(t.Context()), rlock.ErrLost, rlock.ErrMaxHold)
					locktest.NoError(t, next.Err())
					locktest.NoError(t, next.Unlock(t.Context()))
					locktest.Sleep(10 * time.Minute)
					locktest.IsNotError(t, next.Err(), rlock.ErrLost)
				})
			})
		}
	}
}

func takeFenced(t *testing.T, c *rlock.Client, opts ...rlock.AcquireOption) *fenced.Hold {
	h, err := fenced.NewLock(c, "l").Acquire(t.Context(), opts...)
	locktest.NoError(t, err)
	return h
}

func takeOnlyPermit(t *testing.T, c *rlock.Client, opts ...rlock.AcquireOption) *fenced.Hold {
	h, err := fenced.NewSemaphore(c, "l", 1).Acquire(t.Context(), opts...)
	locktest.NoError(t, err)
	return h
}

func takeToWrite(t *testing.T, c *rlock.Client, opts ...rlock.AcquireOption) *fenced.Hold {
	h, err := fenced.NewRWLock(c, "l").Write().Acquire(t.Context(), opts...)
	locktest.NoError(t, err)
	return h
}

// P57: MaxHold ends all levels of the hold. A re-entry has no time of its own, and what was unlocked before its time stays so.
func TestP57_MaxHoldOfLevels(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		l := rlock.NewLock(newClient(t, rdb), "l")
		err := l.Do(t.Context(), func(outer context.Context) error {
			return l.Do(outer, func(inner context.Context) error {
				<-inner.Done()
				locktest.IsError(t, outer.Err(), rlock.ErrMaxHold)
				return inner.Err()
			}, rlock.MaxHold(time.Second))
		}, rlock.MaxHold(time.Minute))
		locktest.IsError(t, err, rlock.ErrMaxHold)
		locktest.Sleep(time.Millisecond) // the release is under way when the contexts end
		locktest.Equal(t, "the lock is taken", m.Exists("l"), false)

		for range 3 { // one after the other: the time of the one before has no effect
			h := acquire(t, t.Context(), l, rlock.MaxHold(time.Minute))
			locktest.Sleep(40 * time.Second)
			locktest.NoError(t, h.Err())
			locktest.Equal(t, "what is left", h.Remaining(), 20*time.Second)
			left, err := l.Remaining(h.Context())
			locktest.NoError(t, err)
			locktest.Equal(t, "what is left", left, 20*time.Second)
			locktest.NoError(t, h.Unlock(t.Context()))
			locktest.IsError(t, h.Err(), rlock.ErrUnlocked)
		}
		for d, says := range map[time.Duration]string{0: "10ms or more", -1: "10ms or more", 5: "5*time.Second"} {
			_, err := l.Acquire(t.Context(), rlock.MaxHold(d))
			if err == nil || !strings.Contains(err.Error(), says) || !strings.Contains(err.Error(), "MaxHold") {
				t.Errorf("MaxHold(%v): %v", d, err)
			}
		}
	})
}

// P57: a hold that was unlocked in time, and whose field in Redis another hold has by a local handoff, has no effect on that one.
func TestP57_MaxHoldBeforeALocalHandoff(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		l := fenced.NewLock(newClient(t, rdb, rlock.WithLocalHandoffs(8)), "l")
		blocks, err := l.Acquire(t.Context())
		locktest.NoError(t, err)
		ways := make(chan *fenced.Hold, 2)
		for _, opts := range [][]rlock.AcquireOption{{rlock.MaxHold(time.Minute)}, nil} {
			go func() {
				h, err := l.Acquire(t.Context(), opts...)
				locktest.NoError(t, err)
				ways <- h
			}()
			locktest.Sleep(time.Millisecond)
		}
		locktest.NoError(t, blocks.Unlock(t.Context()))
		first := <-ways
		field, err := m.HKeys("l")
		locktest.NoError(t, err)
		locktest.NoError(t, first.Unlock(t.Context()))
		second := <-ways
		now, err := m.HKeys("l")
		locktest.NoError(t, err)
		locktest.DeepEqual(t, "the field", now, field)
		locktest.Sleep(5 * time.Minute)
		locktest.NoError(t, second.Err())
		locktest.NoError(t, second.Unlock(t.Context()))
	})
}

// P57: a release that gets no answer is sent again. Until it counts Redis keeps the lock, for a lease at most, and the holder knows already that it
// has none.
func TestP57_MaxHoldWhileRedisIsAway(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		spy, away := locktest.SpyOn(rdb), errors.New("away")
		client := newClient(t, rdb, rlock.WithLease(time.Hour))
		h := acquire(t, t.Context(), rlock.NewLock(client, "l"), rlock.MaxHold(time.Minute))
		locktest.Sleep(30 * time.Second)
		spy.Wrap(func([]string, func() error) error { return away })
		locktest.Sleep(31 * time.Second)
		locktest.IsError(t, h.Err(), rlock.ErrMaxHold)
		locktest.Equal(t, "Redis has the lock", m.Exists("l"), true)
		spy.Wrap(nil)
		locktest.Sleep(time.Minute)
		locktest.Equal(t, "Redis has the lock", m.Exists("l"), false)
		locktest.IsError(t, h.Unlock(t.Context()), rlock.ErrMaxHold)
	})
}

// P57: the release is told to the lock's own state, also where nobody of the client uses that any more. Without the line a client then leaves the lock
// to others for a moment: no other lock has the state meanwhile, and no two locks have it after that.
func TestP57_MaxHoldWithoutTheLine(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		client := newClient(t, rdb)
		messagesOf(t, rdb) // somebody listens
		lacking(m, "ZADD", "ZRANGE", "ZREM")
		other := acquire(t, t.Context(), rlock.NewLock(client, "other"))
		_, err := rlock.NewLock(client, "other").Acquire(t.Context(), rlock.Wait(time.Second))
		locktest.IsError(t, err, rlock.ErrNotAcquired)
		locktest.NoError(t, other.Unlock(t.Context()))
		locktest.Sleep(time.Second)

		h := acquire(t, t.Context(), rlock.NewLock(client, "l"), rlock.MaxHold(10*time.Millisecond))
		locktest.Sleep(time.Second)
		locktest.IsError(t, h.Err(), rlock.ErrMaxHold)
		var later []*rlock.Hold
		for _, l := range named(client, "w", "x", "y", "z") {
			later = append(later, acquire(t, t.Context(), l))
		}
		for _, h := range later {
			locktest.NoError(t, h.Err())
			locktest.NoError(t, h.Unlock(t.Context()))
		}
		locktest.Sleep(time.Second)
		locktest.Equal(t, "on the books", client.Books(), "")
	})
}

// P57: a re-entry, and an Unlock of an inner level, that are under way when the hold ends say why it has.
func TestP57_MaxHoldDuringAnotherCall(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		spy := locktest.SpyOn(rdb)
		l := rlock.NewLock(newClient(t, rdb), "l")
		for name, call := range map[string]func(inner context.Context) error{
			"re-entry": func(inner context.Context) error { _, err := l.Lock(inner); return err },
			"unlock":   l.Unlock,
		} {
			h := acquire(t, t.Context(), l, rlock.MaxHold(time.Minute))
			inner := take(t, l, h.Context())
			locktest.Sleep(59 * time.Second)
			spy.Wrap(func(ops []string, next func() error) error {
				if ops[0] == "level" {
					time.Sleep(1100 * time.Millisecond)
				}
				return next()
			})
			err := call(inner)
			spy.Wrap(nil)
			if !errors.Is(err, rlock.ErrMaxHold) || !errors.Is(err, rlock.ErrLost) {
				t.Errorf("%s: %v", name, err)
			}
			locktest.IsError(t, h.Unlock(t.Context()), rlock.ErrMaxHold)
			locktest.Sleep(time.Minute)
		}
	})
}

// P57: after Close a hold has no time of its own: nothing is sent, and the client is not kept for that.
func TestP57_MaxHoldAfterClose(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		spy := locktest.SpyOn(rdb)
		client := newClient(t, rdb)
		h := acquire(t, t.Context(), rlock.NewLock(client, "l"), rlock.MaxHold(10*time.Second))
		locktest.NoError(t, client.Close())
		before := spy.Commands()
		locktest.Sleep(20 * time.Second)
		locktest.Equal(t, "commands", spy.Commands(), before)
		locktest.IsError(t, h.Err(), rlock.ErrClosed)
		locktest.NoError(t, h.Unlock(t.Context()))
		locktest.Equal(t, "the lock is taken", m.Exists("l"), false)
	})
}
