package rlock_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/fencelock/fencelock/rlock"
)

// acquire is Acquire that must succeed.
func acquire(t testing.TB, ctx context.Context, l *rlock.Lock, opts ...rlock.AcquireOption) *rlock.Hold {
	t.Helper()
	h, err := l.Acquire(ctx, opts...)
	locktest.NoError(t, err)
	return h
}

// isOpen tells whether the channel is not closed.
func isOpen(ch <-chan struct{}) bool {
	synctest.Wait()
	select {
	case <-ch:
		return false
	default:
		return true
	}
}

// P42: the context that Acquire is given bounds the wait alone. The hold has its values, outlives it, and is renewed until Unlock.
func TestP42_AHoldOutlivesTheContextOfItsAcquire(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		l := rlock.NewLock(newClient(t, rdb), "l")
		ctx, cancel := context.WithTimeout(context.WithValue(t.Context(), contextKey("k"), "v"), time.Minute)
		h := acquire(t, ctx, l)
		cancel()
		locktest.Sleep(10 * time.Minute)
		locktest.NoError(t, h.Err())
		locktest.NoError(t, l.Check(h.Context()))
		locktest.Equal(t, "it is open", isOpen(h.Done()), true)
		locktest.Equal(t, "a value", h.Context().Value(contextKey("k")), any("v"))
		_, hasDeadline := h.Context().Deadline()
		locktest.Equal(t, "a deadline", hasDeadline, false)
		if left := h.Remaining(); left < 19*time.Second || left > 30*time.Second {
			t.Errorf("%v are left", left)
		}
		_, err := l.TryLock(t.Context(), 0, 0)
		locktest.IsError(t, err, rlock.ErrNotAcquired)

		locktest.NoError(t, h.Unlock(ctx)) // which has ended
		locktest.Equal(t, "the lock is taken", m.Exists("l"), false)
		locktest.IsError(t, h.Err(), rlock.ErrUnlocked)
		locktest.IsError(t, context.Cause(h.Context()), rlock.ErrUnlocked)
		locktest.Equal(t, "it is open", isOpen(h.Done()), false)
		locktest.Equal(t, "what is left", h.Remaining(), 0)
		locktest.IsError(t, h.Unlock(t.Context()), rlock.ErrNotHeld)
		locktest.IsError(t, h.Extend(t.Context(), time.Minute), rlock.ErrUnlocked)
	})
}

// The wait ends with its context, or with Wait. Then there is no hold, and no ticket in the line.
func TestAcquireEndsItsWait(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		holder := acquire(t, t.Context(), rlock.NewLock(newClient(t, rdb), "l"))
		client := newClient(t, redistest.PipeClient(t, m))
		l := rlock.NewLock(client, "l")
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		for name, c := range map[string]struct {
			ctx  context.Context
			opts []rlock.AcquireOption
			took time.Duration
			want error
		}{
			"its context":    {ctx: ctx, took: 3 * time.Second, want: context.DeadlineExceeded},
			"Wait":           {ctx: t.Context(), opts: []rlock.AcquireOption{rlock.Wait(2 * time.Second)}, took: 2 * time.Second, want: rlock.ErrNotAcquired},
			"without a wait": {ctx: t.Context(), opts: []rlock.AcquireOption{rlock.Wait(0)}, want: rlock.ErrNotAcquired},
		} {
			began := time.Now()
			h, err := l.Acquire(c.ctx, c.opts...)
			locktest.IsError(t, err, c.want)
			locktest.ErrorSays(t, err, `Acquire "l"`)
			locktest.Equal(t, name+": a hold", h, nil)
			if c.ctx == ctx {
				continue // it began at an earlier time
			}
			locktest.Equal(t, name+" takes", time.Since(began), c.took)
		}
		locktest.NoError(t, holder.Unlock(t.Context()))
		locktest.Sleep(time.Second)
		locktest.Equal(t, "keys", len(m.Keys()), 0)
		locktest.Equal(t, "books", client.Books(), "")
	})
}

// P42: an acquire has a holder of its own. With the context of a hold of the same lock it says so at once; Reenter re-enters, NewHolder waits.
func TestP42_AcquireIsOfANewHolder(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		client := newClient(t, rdb)
		l, other := rlock.NewLock(client, "l"), rlock.NewLock(client, "other")
		h := acquire(t, t.Context(), l)
		began := time.Now()
		_, err := l.Acquire(h.Context())
		locktest.ErrorSays(t, err, "rlock.Reenter()", "rlock.NewHolder")
		locktest.IsNotError(t, err, rlock.ErrNotAcquired)
		locktest.Equal(t, "it took", time.Since(began), 0)

		inner := acquire(t, h.Context(), l, rlock.Reenter())
		count, err := l.HoldCount(inner.Context())
		locktest.NoError(t, err)
		locktest.Equal(t, "the hold count", count, 2)
		nested, err := l.Lock(inner.Context())
		locktest.NoError(t, err)
		locktest.NoError(t, l.Unlock(nested))
		locktest.NoError(t, inner.Unlock(t.Context()))
		locktest.IsError(t, inner.Err(), rlock.ErrUnlocked)
		locktest.NoError(t, h.Err())

		of := acquire(t, h.Context(), other) // of another holder, that this one waits for
		_, err = other.TryLock(h.Context(), 0, 0)
		locktest.IsError(t, err, rlock.ErrNotAcquired)
		locktest.NoError(t, of.Unlock(t.Context()))

		waits := locktest.Start(func() error {
			late, err := l.Acquire(rlock.NewHolder(h.Context()))
			if err == nil {
				err = late.Unlock(t.Context())
			}
			return err
		})
		locktest.Sleep(time.Second)
		locktest.NoError(t, h.Unlock(t.Context()))
		locktest.NoError(t, <-waits)
	})
}

// P42: with Reenter a level does not end with the context that it was taken with, nor with an outer hold of another lock. It ends with its own
// hold.
func TestP42_AReentryOutlivesItsContextToo(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		client := newClient(t, rdb)
		l, outer := rlock.NewLock(client, "l"), rlock.NewLock(client, "outer")
		out := acquire(t, t.Context(), outer)
		h := acquire(t, out.Context(), l, rlock.Reenter())
		ctx, cancel := context.WithCancel(h.Context())
		in := acquire(t, ctx, l, rlock.Reenter())
		cancel()
		locktest.NoError(t, out.Unlock(t.Context()))
		locktest.Sleep(10 * time.Minute)
		locktest.NoError(t, in.Err())
		locktest.NoError(t, h.Err())
		_, err := l.ForceUnlock(t.Context())
		locktest.NoError(t, err)
		locktest.IsError(t, in.Err(), rlock.ErrLost)
		locktest.IsError(t, h.Err(), rlock.ErrLost)
		locktest.IsError(t, in.Unlock(t.Context()), rlock.ErrLost)
		locktest.IsError(t, h.Unlock(t.Context()), rlock.ErrLost)
	})
}

// P42: a renewal that is under way as a hold is extended, and asks for less, takes nothing back: not what
// Redis keeps, where the renewal comes after the extension, nor what the client counts on.
func TestP42_ARenewalIsUnderWayAsAHoldIsExtended(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		const way = 100 * time.Millisecond
		h := acquire(t, t.Context(), rlock.NewLock(newClient(t, rdb), "l"))
		var sent atomic.Bool
		underWay := make(chan struct{})
		rdb.AddHook(locktest.Hook(func(_ context.Context, _ redis.Cmder, send func() error) error {
			if sent.CompareAndSwap(false, true) {
				close(underWay)
				time.Sleep(way)
			}
			return send()
		}))
		<-underWay
		locktest.NoError(t, h.Extend(t.Context(), time.Hour))
		extended, left := time.Now(), h.Remaining()
		locktest.Sleep(2 * way) // the renewal is answered
		locktest.Equal(t, "Redis keeps it for", m.TTL("l").Round(time.Second), time.Hour)
		locktest.Equal(t, "what is left", h.Remaining(), left-time.Since(extended))
		locktest.NoError(t, h.Unlock(t.Context()))
	})
}

// A hold that was lost says so, and cannot be extended.
func TestAHoldThatIsLost(t *testing.T) {
	for name, lose := range map[string]func(m *miniredis.Miniredis, l *rlock.Lock){
		"forced open":          func(_ *miniredis.Miniredis, l *rlock.Lock) { _, _ = l.ForceUnlock(context.Background()) },
		"its lease is over":    func(*miniredis.Miniredis, *rlock.Lock) { locktest.Sleep(time.Minute) },
		"deleted, and unknown": func(m *miniredis.Miniredis, _ *rlock.Lock) { m.Del("l") },
	} {
		t.Run(name, func(t *testing.T) {
			locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
				l := rlock.NewLock(newClient(t, rdb), "l")
				h := acquire(t, t.Context(), l, rlock.Lease(time.Minute))
				lose(m, l)
				began := time.Now()
				locktest.IsError(t, h.Extend(t.Context(), time.Hour), rlock.ErrLost)
				locktest.Equal(t, "it took", time.Since(began), 0)
				locktest.Equal(t, "it is open", isOpen(h.Done()), false)
				locktest.IsError(t, h.Err(), rlock.ErrLost)
				locktest.Equal(t, "what is left", h.Remaining(), 0)
				locktest.IsError(t, h.Unlock(t.Context()), rlock.ErrLost)
			})
		})
	}
}

// P42: Extend gives a lease of its own a new length, by one command, and never makes it shorter; of many at once all succeed, and the longest counts.
func TestP42_Extend(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		spy := locktest.SpyOn(rdb)
		l := rlock.NewLock(newClient(t, rdb), "l")
		h := acquire(t, t.Context(), l, rlock.Lease(10*time.Second))
		locktest.NoError(t, h.Extend(t.Context(), 5*time.Second))
		locktest.Equal(t, "after a shorter one", m.TTL("l"), 10*time.Second)
		spy.Reset()
		var all []<-chan error
		for i := range 100 {
			all = append(all, locktest.Start(func() error { return h.Extend(t.Context(), time.Duration(i+1)*time.Second) }))
		}
		for _, one := range all {
			locktest.NoError(t, <-one)
		}
		locktest.Equal(t, "commands", spy.Commands(), 100)
		locktest.Equal(t, "the key lives for", m.TTL("l"), 100*time.Second)
		if left := h.Remaining(); left < 98*time.Second || left > 100*time.Second {
			t.Errorf("%v are left", left)
		}
		locktest.Sleep(90 * time.Second)
		locktest.NoError(t, h.Err())
		locktest.NoError(t, h.Extend(t.Context(), 90*time.Second))
		locktest.Sleep(80 * time.Second)
		locktest.NoError(t, h.Err())
		<-h.Done()
		locktest.IsError(t, h.Err(), rlock.ErrLost)
		locktest.IsError(t, h.Unlock(t.Context()), rlock.ErrLost)
	})
}

// P42: a renewed hold has at least the time that Extend has asked for, and is renewed as before.
func TestP42_ExtendOfARenewedHold(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		l := rlock.NewLock(newClient(t, rdb), "l")
		h := acquire(t, t.Context(), l)
		locktest.NoError(t, h.Extend(t.Context(), 5*time.Minute))
		m.SetError("LOADING away")
		locktest.Sleep(4*time.Minute + 30*time.Second)
		locktest.NoError(t, h.Err())
		m.SetError("")
		locktest.Sleep(20 * time.Minute)
		locktest.NoError(t, h.Err())
		if ttl := m.TTL("l"); ttl < 19*time.Second || ttl > 30*time.Second {
			t.Errorf("the key lives for %v", ttl)
		}
		locktest.NoError(t, h.Unlock(t.Context()))
	})
}

// While Redis is away Extend says what Redis has said, when its context, the client's patience or the lease ends. The hold goes on.
func TestExtendWhileRedisIsAway(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		l := rlock.NewLock(newClient(t, rdb), "l")
		h := acquire(t, t.Context(), l, rlock.Lease(time.Minute))
		m.SetError("LOADING away")
		began := time.Now()
		locktest.ErrorSays(t, h.Extend(t.Context(), time.Hour), `Extend "l"`, "LOADING away")
		if took := time.Since(began); took < 9*time.Second || took > 10*time.Second {
			t.Errorf("it took %v", took)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		locktest.IsError(t, h.Extend(ctx, time.Hour), context.DeadlineExceeded)
		locktest.NoError(t, h.Err())
		late := locktest.Start(func() error { return h.Extend(t.Context(), time.Hour) })
		locktest.Sleep(time.Second)
		m.SetError("")
		locktest.NoError(t, <-late)
		locktest.Equal(t, "the key lives for", m.TTL("l"), time.Hour)
		locktest.NoError(t, h.Unlock(t.Context()))
	})
}

// Bad input is an error that says what to do, and nothing is sent.
func TestBadOptionsOfAcquire(t *testing.T) {
	rdb, l := newLock(t)
	h := acquire(t, t.Context(), l)
	spy := locktest.SpyOn(rdb)
	for name, c := range map[string]struct {
		opts []rlock.AcquireOption
		says string
	}{
		"nil":              {[]rlock.AcquireOption{nil}, "leave it out"},
		"a negative wait":  {[]rlock.AcquireOption{rlock.Wait(-time.Second)}, "0 tries once"},
		"a bare number":    {[]rlock.AcquireOption{rlock.Wait(5)}, "5*time.Second"},
		"a short lease":    {[]rlock.AcquireOption{rlock.Lease(time.Millisecond)}, "10ms or more"},
		"a negative lease": {[]rlock.AcquireOption{rlock.Lease(-1)}, "10ms or more"},
		"no word":          {[]rlock.AcquireOption{rlock.Lasting("")}, "say in one or two what the holder does"},
		"a blank word":     {[]rlock.AcquireOption{rlock.Lasting(" \t")}, "say in one or two what the holder does"},
		"a long word":      {[]rlock.AcquireOption{rlock.Lasting("leads and leads and leads and lead")}, "34 bytes: use 32 or fewer"},
		"an unseen sign":   {[]rlock.AcquireOption{rlock.Lasting("leads\x1b[2J")}, `"leads\x1b[2J": use what can be seen`},
		"no UTF-8":         {[]rlock.AcquireOption{rlock.Lasting("\xff")}, "use what can be seen"},
		"a space":          {[]rlock.AcquireOption{rlock.Lasting("leads ")}, "without a space at an end"},
	} {
		held, err := l.Acquire(t.Context(), c.opts...)
		locktest.ErrorSays(t, err, `Acquire "l"`, c.says)
		locktest.Equal(t, name+": a hold", held, nil)
	}
	for _, d := range []time.Duration{0, -1, 30, time.Millisecond, 200 * 365 * 24 * time.Hour} {
		locktest.ErrorSays(t, h.Extend(t.Context(), d), "use 10ms or more")
	}
	_, err := (*rlock.Lock)(nil).Acquire(t.Context())
	locktest.ErrorSays(t, err, "NewLock")
	locktest.Equal(t, "commands", spy.Commands(), 0)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	locktest.IsError(t, h.Extend(ended, time.Minute), context.Canceled)
	locktest.NoError(t, h.Unlock(t.Context()))
}

// P4: a Hold that is dropped without Unlock is not renewed for ever.
func TestP4_DroppedHold(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		var log locktest.Log
		l := rlock.NewLock(newClient(t, rdb, rlock.WithLogger(log.Logger())), "l")
		func() { acquire(t, t.Context(), l).Waited() }()
		for range 7 { // two leases
			runtime.GC()
			runtime.GC()
			locktest.Sleep(10 * time.Second)
		}
		locktest.Equal(t, "the lock is taken", m.Exists("l"), false)
		locktest.Equal(t, "log lines", log.Count("dropped without Unlock"), 1)
	})
}

// Close ends a hold, and its Unlock releases it all the same.
func TestHoldOfAClientThatIsClosed(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		client := newClient(t, rdb)
		h := acquire(t, t.Context(), rlock.NewLock(client, "l"))
		waited := h.Waited()
		locktest.NoError(t, client.Close())
		locktest.IsError(t, h.Err(), rlock.ErrClosed)
		locktest.IsError(t, h.Extend(t.Context(), time.Minute), rlock.ErrClosed)
		locktest.Equal(t, "nobody has waited", isOpen(waited), true)
		if err := h.Unlock(t.Context()); errors.Is(err, rlock.ErrLost) {
			t.Errorf("the Unlock says %v", err)
		}
	})
}

// P6: a lease that was extended counts from before the command was sent that was answered.
func TestP6_AnExtensionCountsFromItsSending(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		spy := locktest.SpyOn(rdb)
		h := acquire(t, t.Context(), rlock.NewLock(newClient(t, rdb), "l"), rlock.Lease(time.Minute))
		spy.Wrap(func(ops []string, next func() error) error {
			err := next()
			time.Sleep(2 * time.Second) // executed, and answered late
			return err
		})
		sent := time.Now()
		locktest.NoError(t, h.Extend(t.Context(), 2*time.Minute))
		if until := time.Now().Add(h.Remaining()).Sub(sent); until > 2*time.Minute {
			t.Errorf("it can be trusted until %v after it was sent", until)
		}
	})
}

// P3: an extension that got no answer may have been executed. A hold that is lost then is released for as long as its lease may last.
func TestP3_AnExtensionWithoutAnAnswer(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		spy := locktest.SpyOn(rdb)
		l := rlock.NewLock(newClient(t, rdb), "l")
		h := acquire(t, t.Context(), l, rlock.Lease(20*time.Second))
		locktest.NoError(t, h.Extend(t.Context(), 10*time.Second)) // the server knows the script now
		var back atomic.Bool
		spy.Wrap(func(ops []string, next func() error) error {
			switch {
			case back.Load():
				return next()
			case slices.Contains(ops, "renew"):
				_ = next() // executed
			}
			return errors.New("the connection is gone")
		})
		if err := h.Extend(t.Context(), time.Hour); err == nil {
			t.Error("it is extended")
		}
		<-h.Done()
		locktest.IsError(t, h.Unlock(t.Context()), rlock.ErrLost)
		locktest.Sleep(10 * time.Minute)
		locktest.Equal(t, "the lock is taken", m.Exists("l"), true)
		back.Store(true)
		locktest.Sleep(time.Minute)
		locktest.Equal(t, "the lock is taken", m.Exists("l"), false)
	})
}
