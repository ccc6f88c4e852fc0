package rlock_test

import (
	"context"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/engine"
	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/fencelock/fencelock/rlock"
)

// P41: while Redis is away a hold with a long lease asks no more often after half an hour than after a minute.
func TestP41_ALongOutage(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		var n atomic.Int64
		rdb.AddHook(locktest.Hook(func(ctx context.Context, cmd redis.Cmder, send func() error) error {
			n.Add(int64(len(locktest.Ops(cmd.Args()))))
			return send()
		}))
		l := rlock.NewLock(newClient(t, rdb), "l")
		h, err := l.Acquire(t.Context(), rlock.Lease(24*time.Hour))
		locktest.NoError(t, err)
		_ = h.Waited()
		locktest.Sleep(time.Minute)
		m.SetError("LOADING x")
		var rates []int64
		for range 6 {
			before := n.Load()
			time.Sleep(time.Minute)
			rates = append(rates, n.Load()-before)
			time.Sleep(4 * time.Minute)
		}
		m.SetError("")
		t.Log("questions a minute, every five minutes:", rates)
		if rates[5] > 2*rates[0] {
			t.Errorf("they grow: %v", rates)
		}
		locktest.NoError(t, h.Unlock(t.Context()))
	})
}

// P4: a client that was closed with a hold that is never unlocked is garbage, also where the hold's user wanted to know who waits.
func TestP4_AClosedClientIsGarbage(t *testing.T) {
	for _, waited := range []bool{false, true} {
		locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
			var gone atomic.Bool
			func() {
				c, err := rlock.New(redistest.PipeClient(t, m))
				locktest.NoError(t, err)
				h, err := rlock.NewLock(c, "l").Acquire(t.Context())
				locktest.NoError(t, err)
				if waited {
					_ = h.Waited()
				}
				runtime.AddCleanup(engine.ClientOf(c), func(int) { gone.Store(true) }, 0)
				locktest.NoError(t, c.Close())
			}()
			for range 200 {
				time.Sleep(time.Second)
				runtime.GC()
				synctest.Wait()
			}
			if !gone.Load() {
				t.Errorf("Waited was called: %v: the client is not garbage", waited)
			}
		})
	}
}

// An Extend that Redis does not answer ends with the hold: with its Unlock, and with Close.
func TestExtendEndsWithTheHold(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		c := newClient(t, rdb)
		l := rlock.NewLock(c, "l")
		for _, what := range []string{"Unlock", "Close"} {
			h, err := l.Acquire(t.Context(), rlock.Lease(time.Minute))
			locktest.NoError(t, err)
			m.SetError("LOADING x")
			began := time.Now()
			var took time.Duration
			ext := locktest.Start(func() error {
				err := h.Extend(t.Context(), time.Hour)
				took = time.Since(began)
				return err
			})
			synctest.Wait()
			if what == "Close" {
				locktest.NoError(t, c.Close())
			} else {
				_ = h.Unlock(t.Context())
			}
			ended := time.Since(began)
			err = <-ext
			t.Logf("%s after %v, Extend after %v: %v", what, ended, took, err)
			if took > ended+time.Second {
				t.Errorf("%s: Extend went on for %v", what, took-ended)
			}
			m.SetError("")
			locktest.Sleep(time.Minute)
			_ = h.Unlock(t.Context())
		}
	})
}

// P42: with the context of a hold that is over Acquire says what Lock says, and not that it would wait for itself.
func TestP42_AcquireWithTheContextOfAHoldThatIsOver(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		c := newClient(t, rdb)
		l := rlock.NewLock(c, "l")
		h, err := l.Acquire(t.Context())
		locktest.NoError(t, err)
		_, err = l.ForceUnlock(t.Context())
		locktest.NoError(t, err)
		_, err = l.Lock(h.Context())
		locktest.IsError(t, err, rlock.ErrLost)
		_, err = l.Acquire(h.Context())
		locktest.IsError(t, err, rlock.ErrLost)
		_, err = l.Acquire(context.WithoutCancel(h.Context()))
		locktest.IsError(t, err, rlock.ErrLost)
		_ = h.Unlock(t.Context())
		h, err = l.Acquire(t.Context())
		locktest.NoError(t, err)
		locktest.NoError(t, c.Close())
		_, err = l.Lock(h.Context())
		locktest.IsError(t, err, rlock.ErrClosed)
		_, err = l.Acquire(h.Context())
		locktest.IsError(t, err, rlock.ErrClosed)
		_ = h.Unlock(t.Context())
	})
}

// P12: during Shutdown a context that has a hold gets another lock, by Do and by Acquire.
func TestP12_AcquireUnderAHoldDuringShutdown(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		c := newClient(t, rdb)
		a, b := rlock.NewLock(c, "a"), rlock.NewLock(c, "b")
		h, err := a.Acquire(t.Context())
		locktest.NoError(t, err)
		done := locktest.Start(func() error { return c.Shutdown(t.Context()) })
		synctest.Wait()
		locktest.NoError(t, b.Do(h.Context(), func(context.Context) error { return nil }))
		hb, err := b.Acquire(h.Context())
		if err != nil {
			t.Error(err)
		} else {
			locktest.NoError(t, hb.Unlock(t.Context()))
		}
		locktest.NoError(t, h.Unlock(t.Context()))
		locktest.NoError(t, <-done)
	})
}

// DoAll asks for a lock once where what is left of the wait is shorter than an answer takes.
func TestDoAllWithLessThanAnAnswerLeft(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		var slow time.Duration
		rdb.AddHook(locktest.Hook(func(ctx context.Context, cmd redis.Cmder, send func() error) error {
			time.Sleep(slow)
			return send()
		}))
		c := newClient(t, rdb)
		both := []*rlock.Lock{rlock.NewLock(c, "a"), rlock.NewLock(c, "b")}
		nothing := func(context.Context) error { return nil }
		locktest.NoError(t, rlock.DoAll(t.Context(), both, nothing))
		slow = 4 * time.Millisecond
		for _, wait := range []time.Duration{0, 4500 * time.Microsecond, 6 * time.Millisecond} {
			if err := rlock.DoAll(t.Context(), both, nothing, rlock.Wait(wait)); err != nil {
				t.Error(wait, err)
			}
			time.Sleep(time.Second)
		}
	})
}
