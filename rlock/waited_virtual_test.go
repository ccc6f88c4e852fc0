package rlock_test

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/fencelock/fencelock/rlock"
)

// waitFor begins a call that waits for the lock, and ends with the test.
func waitFor(t *testing.T, l *rlock.Lock) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := locktest.Start(func() error {
		h, err := l.Acquire(ctx)
		if err == nil {
			err = h.Unlock(ctx)
		}
		return err
	})
	locktest.Sleep(time.Second)
	return func() {
		cancel()
		<-done
	}
}

// P41: a holder that asks hears of the first one that comes to wait, and of those who wait already, in its own client and in others.
func TestP41_TheHolderHearsThatSomebodyWaits(t *testing.T) {
	for name, c := range map[string]struct{ otherClient, before bool }{
		"its own client, before": {before: true},
		"its own client, later":  {},
		"another client, before": {otherClient: true, before: true},
		"another client, later":  {otherClient: true},
	} {
		t.Run(name, func(t *testing.T) {
			locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
				client := newClient(t, rdb)
				mine := rlock.NewLock(client, "l")
				waits := mine
				if c.otherClient {
					waits = rlock.NewLock(newClient(t, redistest.PipeClient(t, m)), "l")
				}
				h := acquire(t, t.Context(), mine)
				var waited <-chan struct{}
				if !c.before {
					waited = h.Waited()
					locktest.Sleep(time.Minute)
					locktest.Equal(t, "nobody has waited", isOpen(waited), true)
				}
				stop := waitFor(t, waits)
				if c.before {
					waited = h.Waited()
				}
				locktest.Equal(t, "nobody has waited", isOpen(waited), false)
				stop()
				locktest.Equal(t, "it opens again", isOpen(h.Waited()), false)
				locktest.NoError(t, h.Unlock(t.Context()))

				h = acquire(t, t.Context(), mine) // the next hold begins anew
				locktest.Equal(t, "nobody has waited", isOpen(h.Waited()), true)
				locktest.NoError(t, h.Unlock(t.Context()))
				locktest.Sleep(time.Minute)
				locktest.Equal(t, "books", client.Books(), "")
			})
		})
	}
}

// P41: where the message is lost, or Redis was away, the holder hears within ten seconds.
func TestP41_AMessageThatIsLost(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		h := acquire(t, t.Context(), rlock.NewLock(newClient(t, rdb), "l"))
		waited := h.Waited()
		locktest.Sleep(11 * time.Second)
		_, err := m.ZAdd("fencelock_line:{l}", 1, "somebody:1") // and has said nothing
		locktest.NoError(t, err)
		locktest.Sleep(8500 * time.Millisecond)
		locktest.Equal(t, "nobody has waited", isOpen(waited), true)
		locktest.Sleep(time.Second)
		locktest.Equal(t, "nobody has waited", isOpen(waited), false)
		locktest.NoError(t, h.Unlock(t.Context()))
	})
}

// P41: calls that do not wait are nobody who waits, and a hold that nobody asks about costs no command.
func TestP41_WhoDoesNotWait(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		spy := locktest.SpyOn(rdb)
		mine, waits := rlock.NewLock(newClient(t, rdb), "l"), rlock.NewLock(newClient(t, redistest.PipeClient(t, m)), "l")
		h := acquire(t, t.Context(), mine)
		stop := waitFor(t, waits)
		stop()
		locktest.Sleep(time.Second) // it has left the line
		locktest.Equal(t, "questions without Waited", spy.Count("waiting"), 0)
		waited := h.Waited()
		for _, l := range []*rlock.Lock{mine, waits} {
			_, err := l.Acquire(t.Context(), rlock.Wait(0))
			locktest.IsError(t, err, rlock.ErrNotAcquired)
		}
		locktest.Equal(t, "nobody has waited", isOpen(waited), true)
		locktest.NoError(t, h.Unlock(t.Context()))
		n := spy.Count("waiting")
		locktest.Sleep(time.Minute)
		locktest.Equal(t, "questions after the Unlock", spy.Count("waiting"), n)
		locktest.Equal(t, "nobody has waited", isOpen(waited), true)
		locktest.Equal(t, "a hold that is over", isOpen(h.Waited()), true)
	})
}

// P41: a question that gets an error is asked again.
func TestP41_AQuestionThatFails(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		mine, waits := rlock.NewLock(newClient(t, rdb), "l"), rlock.NewLock(newClient(t, redistest.PipeClient(t, m)), "l")
		h := acquire(t, t.Context(), mine)
		stop := waitFor(t, waits)
		defer stop()
		spy := locktest.SpyOn(rdb)
		var failures atomic.Int32
		spy.Wrap(func(ops []string, next func() error) error {
			if slices.Contains(ops, "waiting") && failures.Add(1) <= 3 {
				return locktest.Reply("LOADING away")
			}
			return next()
		})
		waited := h.Waited()
		locktest.Sleep(2 * time.Second)
		locktest.Equal(t, "nobody has waited", isOpen(waited), false)
		locktest.NoError(t, h.Unlock(t.Context()))
	})
}

// P41: who has a permit, reads or writes hears of the calls of its own client that wait, in a line or in none, and of none that gets what it asks for.
func TestP41_CallsOfTheSameClientForAShare(t *testing.T) {
	type waits interface{ Waited() <-chan struct{} }
	type holds interface {
		waits
		Unlock(context.Context) error
	}
	permit := func(ctx context.Context, c *rlock.Client) (holds, error) {
		return fenced.NewSemaphore(c, "l", 2).Acquire(ctx)
	}
	read := func(ctx context.Context, c *rlock.Client) (holds, error) {
		return rlock.NewRWLock(c, "l").Read().Acquire(ctx)
	}
	write := func(ctx context.Context, c *rlock.Client) (holds, error) {
		return rlock.NewRWLock(c, "l").Write().Acquire(ctx)
	}
	type acquires = func(context.Context, *rlock.Client) (holds, error)
	for name, c := range map[string]struct {
		have []acquires // one after the other
		wait acquires
	}{
		"permits":               {[]acquires{permit, permit}, permit},
		"who reads, of a write": {[]acquires{read, read}, write},
		"who writes, of a read": {[]acquires{write}, read},
		"who writes":            {[]acquires{write}, write},
	} {
		for _, line := range []bool{true, false} {
			for _, before := range []bool{true, false} {
				t.Run(fmt.Sprintf("%s, a line %v, before %v", name, line, before), func(t *testing.T) {
					locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
						client := newClient(t, rdb)
						if !line {
							locktest.NoError(t, rdb.Ping(t.Context()).Err())
							lacking(m, "ZADD", "ZCARD", "ZRANGE", "ZRANK", "ZREM", "ZSCORE")
						}
						var have []holds
						var waited []<-chan struct{}
						listen := func(h holds) { waited = append(waited, h.Waited()) }
						for _, acquire := range c.have {
							h, err := acquire(t.Context(), client)
							locktest.NoError(t, err)
							have = append(have, h)
							if !before {
								listen(h)
							}
						}
						locktest.Sleep(time.Minute)
						for _, w := range waited {
							locktest.Equal(t, "nobody has waited", isOpen(w), true)
						}
						ctx, cancel := context.WithCancel(t.Context())
						ended := locktest.Start(func() error { _, err := c.wait(ctx, client); return err })
						locktest.Sleep(100 * time.Millisecond)
						if before {
							for _, h := range have {
								listen(h)
							}
						}
						for _, w := range waited {
							locktest.Equal(t, "nobody has waited", isOpen(w), false)
						}
						cancel()
						locktest.IsError(t, <-ended, context.Canceled)
						for _, h := range have {
							locktest.NoError(t, h.Unlock(t.Context()))
						}
						locktest.Sleep(time.Minute)
						locktest.Equal(t, "books", client.Books(), "")
						h, err := c.have[0](t.Context(), client) // the next hold begins anew
						locktest.NoError(t, err)
						locktest.Equal(t, "nobody has waited", isOpen(h.Waited()), true)
						locktest.NoError(t, h.Unlock(t.Context()))
					})
				})
			}
		}
	}
}
