package rlock_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/redistest"
	"github.com/fencelock/fencelock/rlock"
)

// DESIGN 7: a lease of 30 s is renewed every 10 s, and not more often, for as long as it is held; after the Unlock no
// renewal follows (Inv10), and the watchdog's goroutine ends (Inv9).
func TestVirtualRenewal(t *testing.T) {
	redistest.CheckGoroutines(t)
	bhVirtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		spy := bhSpyOn(rdb)
		l := rlock.NewLock(bhClient(t, rdb), "l")
		held := bhLock(t, l, t.Context())
		for range 600 {
			bhAsleep(time.Second)
			if ttl := m.TTL("l"); ttl < 19*time.Second || ttl > 30*time.Second {
				t.Fatalf("the key lives for %v", ttl)
			}
			bhOK(t, held.Err())
		}
		if n := spy.count("renew"); n < 59 || n > 63 { // the first is an EVALSHA and an EVAL
			t.Errorf("%d renewals in ten minutes", n)
		}
		bhOK(t, l.Unlock(held))
		n := spy.count("renew")
		bhAsleep(time.Minute)
		bhEqual(t, "renewals after the Unlock", spy.count("renew"), n)
		bhEqual(t, "the key is there", m.Exists("l"), false)
	})
}

// WithLease: the rhythm follows.
func TestVirtualRenewalOfAShortLease(t *testing.T) {
	bhVirtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		l := rlock.NewLock(bhClient(t, rdb, rlock.WithLease(3*time.Second)), "l")
		held := bhLock(t, l, t.Context())
		for range 120 {
			bhAsleep(500 * time.Millisecond)
			if ttl := m.TTL("l"); ttl < 1800*time.Millisecond || ttl > 3*time.Second {
				t.Fatalf("the key lives for %v", ttl)
			}
		}
		bhOK(t, held.Err())
		bhOK(t, l.Unlock(held))
	})
}

// Inv3: an explicit lease is not renewed, and its context ends with ErrLost before Redis forgets it, but not much before.
func TestVirtualExplicitLease(t *testing.T) {
	for _, lease := range []time.Duration{time.Second, 5 * time.Second, 30 * time.Second, time.Hour} {
		bhVirtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
			l := rlock.NewLock(bhClient(t, rdb), "l")
			began := time.Now()
			held, err := l.LockLease(t.Context(), lease)
			bhOK(t, err)
			<-held.Done()
			left := m.TTL("l")
			if left < time.Millisecond+lease/100-time.Millisecond || !m.Exists("l") {
				t.Errorf("lease %v: the context ended with %v left in Redis", lease, left)
			}
			if took := time.Since(began); took < lease-lease/100-150*time.Millisecond {
				t.Errorf("lease %v: the context ended after %v", lease, took)
			}
			bhIs(t, held.Err(), rlock.ErrLost, context.Canceled)
			bhIs(t, context.Cause(held), rlock.ErrLost)
			bhIs(t, l.Check(held), rlock.ErrLost)
			bhIs(t, l.Unlock(held), rlock.ErrLost)
			bhIs(t, l.Unlock(held), rlock.ErrNotHeld)
		})
	}
}

// P5: Err looks at the clock itself: at the deadline to the nanosecond it says ErrLost, whatever the watchdog does.
func TestP5_ErrLooksAtTheClock(t *testing.T) {
	bhVirtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		l := rlock.NewLock(bhClient(t, rdb), "l")
		for range 200 { // whoever runs first
			began := time.Now()
			held, err := l.LockLease(t.Context(), 500*time.Millisecond)
			bhOK(t, err)
			deadline := began.Add(500*time.Millisecond - 6*time.Millisecond)
			time.Sleep(time.Until(deadline))
			bhIs(t, held.Err(), rlock.ErrLost, context.Canceled)
			bhIs(t, context.Cause(held), rlock.ErrLost)
			bhIs(t, l.Unlock(held), rlock.ErrLost)
			bhAsleep(time.Second)
		}
	})
}

// P11: a re-entry with a shorter lease shortens nothing; with a longer one it lengthens the hold.
func TestVirtualReentryWithALease(t *testing.T) {
	bhVirtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		l := rlock.NewLock(bhClient(t, rdb), "l")
		outer, err := l.LockLease(t.Context(), 20*time.Second)
		bhOK(t, err)
		inner, err := l.LockLease(outer, 2*time.Second)
		bhOK(t, err)
		bhEqual(t, "TTL", m.TTL("l"), 20*time.Second)
		bhAsleep(3 * time.Second)
		bhOK(t, inner.Err()) // one deadline a hold
		bhOK(t, l.Unlock(inner))
		bhEqual(t, "TTL", m.TTL("l"), 17*time.Second)
		longer, err := l.LockLease(outer, time.Minute)
		bhOK(t, err)
		bhEqual(t, "TTL", m.TTL("l"), time.Minute)
		bhOK(t, l.Unlock(longer))
		bhEqual(t, "TTL", m.TTL("l"), time.Minute)
		bhAsleep(59 * time.Second)
		bhOK(t, outer.Err())
		bhAsleep(time.Second)
		bhIs(t, outer.Err(), rlock.ErrLost)
		bhIs(t, l.Unlock(outer), rlock.ErrLost)
	})
}

// P11: a re-entry with a shorter lease inside a renewed hold changes nothing about its renewal.
func TestVirtualShortReentryInARenewedHold(t *testing.T) {
	bhVirtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		l := rlock.NewLock(bhClient(t, rdb), "l")
		outer := bhLock(t, l, t.Context())
		inner, err := l.LockLease(outer, time.Second)
		bhOK(t, err)
		for range 300 {
			bhAsleep(time.Second)
			if ttl := m.TTL("l"); ttl < 19*time.Second {
				t.Fatalf("the key lives for %v", ttl)
			}
		}
		bhOK(t, inner.Err())
		bhOK(t, l.Unlock(inner))
		bhOK(t, l.Unlock(outer))
	})
}

// P11: a re-entry with lease 0 inside an explicit lease is renewed until its own Unlock, and not after it.
func TestP11_RenewedReentryInAnExplicitLease(t *testing.T) {
	bhVirtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		spy := bhSpyOn(rdb)
		l := rlock.NewLock(bhClient(t, rdb), "l")
		outer, err := l.LockLease(t.Context(), 5*time.Second)
		bhOK(t, err)
		bhAsleep(4 * time.Second)
		inner := bhLock(t, l, outer)
		bhAsleep(10 * time.Minute)
		bhOK(t, inner.Err())
		bhOK(t, outer.Err())
		bhOK(t, l.Unlock(inner))
		bhOK(t, outer.Err())
		renewals := spy.count("renew")
		bhAsleep(30 * time.Second)
		bhEqual(t, "renewals after the inner Unlock", spy.count("renew"), renewals)
		bhIs(t, outer.Err(), rlock.ErrLost)
		bhIs(t, l.Unlock(outer), rlock.ErrLost)
	})
}

// Inv11: a level is not renewed any more once the user's context has ended; the lease runs out.
func TestInv11_EndedContextIsNotRenewed(t *testing.T) {
	for name, wrap := range map[string]func(context.Context) (context.Context, context.CancelFunc){
		"cancelled": context.WithCancel,
		"new holder above": func(ctx context.Context) (context.Context, context.CancelFunc) {
			user, cancel := context.WithCancel(ctx)
			return rlock.NewHolder(user), cancel
		},
		"new holder below": func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithCancel(rlock.NewHolder(ctx))
		},
	} {
		t.Run(name, func(t *testing.T) {
			bhVirtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
				l := rlock.NewLock(bhClient(t, rdb), "l")
				user, cancel := wrap(t.Context())
				held := bhLock(t, l, user)
				inner := bhLock(t, l, held)
				bhAsleep(time.Minute)
				bhOK(t, inner.Err())
				cancel()
				bhAsleep(31 * time.Second)
				bhEqual(t, "the key is there", m.Exists("l"), false)
				bhIs(t, l.Check(inner), rlock.ErrLost)
				bhIs(t, l.Unlock(inner), rlock.ErrLost)
				bhIs(t, l.Unlock(held), rlock.ErrLost)
			})
		})
	}
}

// P11, Inv11: with two levels, the one whose context lives keeps the hold, the other one does not.
func TestP11_OneOfTwoLevelsEnds(t *testing.T) {
	bhVirtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		l := rlock.NewLock(bhClient(t, rdb), "l")
		outer := bhLock(t, l, t.Context())
		middle, cancel := context.WithCancel(outer)
		inner := bhLock(t, l, middle)
		cancel()
		bhAsleep(5 * time.Minute)
		bhIs(t, inner.Err(), context.Canceled)
		bhOK(t, outer.Err())
		bhOK(t, l.Check(outer))
		bhIs(t, l.Check(inner), context.Canceled)
		bhOK(t, l.Unlock(inner))
		bhOK(t, l.Unlock(outer))

		explicit, err := l.LockLease(t.Context(), 10*time.Second) // and the other way round: the kept one ends
		bhOK(t, err)
		middle, cancel = context.WithCancel(explicit)
		bhLock(t, l, middle)
		bhAsleep(5 * time.Minute)
		bhOK(t, explicit.Err())
		cancel()
		bhAsleep(31 * time.Second)
		bhIs(t, explicit.Err(), rlock.ErrLost)
	})
}

// A hold whose outer lock was unlocked first is renewed until its own Unlock (P11), but not beyond the user's context.
func TestP11_WrongOrderIsRenewed(t *testing.T) {
	bhVirtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		c := bhClient(t, rdb)
		a, b := rlock.NewLock(c, "a"), rlock.NewLock(c, "b")
		user, cancel := context.WithCancel(t.Context())
		inA := bhLock(t, a, user)
		inB := bhLock(t, b, inA)
		bhOK(t, a.Unlock(inA))
		bhAsleep(5 * time.Minute)
		bhOK(t, b.Check(inB))
		cancel()
		bhAsleep(31 * time.Second)
		bhEqual(t, "b is there", m.Exists("b"), false)
		bhIs(t, b.Unlock(inB), rlock.ErrLost)
	})
}

// P4, Inv11: a holder that was dropped without Unlock is logged once and not renewed.
func TestP4_DroppedHolder(t *testing.T) {
	for name, drop := range map[string]func(l *rlock.Lock) error{
		"plain": func(l *rlock.Lock) error {
			_, err := l.Lock(context.Background())
			return err
		},
		"under a new holder": func(l *rlock.Lock) error {
			_, err := l.Lock(rlock.NewHolder(context.Background()))
			return err
		},
		"values": func(l *rlock.Lock) error {
			held, err := l.Lock(context.WithValue(rlock.NewHolder(context.Background()), bhKey("k"), 1))
			_ = context.WithValue(held, bhKey("k"), 2)
			return err
		},
		"cancelled above": func(l *rlock.Lock) error {
			held, err := l.Lock(context.Background())
			_, cancel := context.WithTimeout(held, time.Minute)
			cancel()
			return err
		},
		"two levels": func(l *rlock.Lock) error {
			held, err := l.Lock(context.Background())
			if err == nil {
				_, err = l.Lock(held)
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			bhVirtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
				var log bhLog
				l := rlock.NewLock(bhClient(t, rdb, log.option()), "l")
				bhOK(t, drop(l))
				for range 7 { // two leases
					runtime.GC()
					runtime.GC()
					bhAsleep(10 * time.Second)
				}
				bhEqual(t, "the key is there", m.Exists("l"), false)
				bhEqual(t, "log lines", log.count("dropped without Unlock"), 1)
			})
		})
	}
}

// P4: a hold whose returned context was thrown away is renewed as long as a context with its holder is there.
func TestVirtualKeptHolder(t *testing.T) {
	for name, wrap := range map[string]func(context.Context) context.Context{
		"plain": func(ctx context.Context) context.Context { return ctx },
		"value": func(ctx context.Context) context.Context { return context.WithValue(ctx, bhKey("k"), 1) },
		"cancel": func(ctx context.Context) context.Context {
			ctx, cancel := context.WithCancel(ctx)
			context.AfterFunc(ctx, cancel)
			return ctx
		},
	} {
		t.Run(name, func(t *testing.T) {
			bhVirtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
				var log bhLog
				l := rlock.NewLock(bhClient(t, rdb, log.option()), "l")
				ctx := rlock.NewHolder(context.Background())
				_, err := l.Lock(wrap(ctx))
				bhOK(t, err)
				for range 12 {
					runtime.GC()
					runtime.GC()
					bhAsleep(10 * time.Second)
				}
				bhOK(t, l.Check(ctx))
				bhEqual(t, "the log", log.String(), "")
				bhOK(t, l.Unlock(ctx))
			})
		})
	}
}

// DESIGN 7: renewals that fail are repeated; the context ends at its deadline, before Redis forgets (Inv3); if one gets
// through before, nothing happened.
func TestVirtualRenewalFails(t *testing.T) {
	bhVirtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		spy := bhSpyOn(rdb)
		var log bhLog
		l := rlock.NewLock(bhClient(t, rdb, log.option()), "l")
		fail := func(on bool) {
			spy.wrap(func(ctx context.Context, script string, next func() error) error {
				if on && script == "renew" {
					return errors.New("no way")
				}
				return next()
			})
		}
		held := bhLock(t, l, t.Context())
		fail(true)
		bhAsleep(28500 * time.Millisecond) // it is tried every second
		bhOK(t, held.Err())
		if n := spy.count("renew"); n < 10 {
			t.Errorf("%d attempts to renew", n)
		}
		fail(false)
		bhAsleep(5 * time.Minute)
		bhOK(t, held.Err())
		fail(true)
		<-held.Done()
		if !m.Exists("l") {
			t.Errorf("the context ended after the lease")
		}
		bhIs(t, held.Err(), rlock.ErrLost)
		synctest.Wait() // for the log
		bhEqual(t, "log lines of the loss", log.count("lock lost"), 1)
		if log.count("no way") == 0 {
			t.Errorf("the log does not tell of the failures")
		}
		bhIs(t, l.Unlock(held), rlock.ErrLost)
	})
}

// DESIGN 7: a renewal that finds the hold gone ends its context promptly, and never brings it back (Inv10).
func TestVirtualRenewalFindsItGone(t *testing.T) {
	bhVirtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		l := rlock.NewLock(bhClient(t, rdb), "l")
		held := bhLock(t, l, t.Context())
		bhAsleep(5 * time.Second)
		m.Del("l")
		began := time.Now()
		<-held.Done()
		if took := time.Since(began); took > 10*time.Second { // a third of the lease
			t.Errorf("the loss was found after %v", took)
		}
		bhIs(t, held.Err(), rlock.ErrLost)
		bhAsleep(time.Minute)
		bhEqual(t, "the key is there", m.Exists("l"), false)
		bhIs(t, l.Unlock(held), rlock.ErrLost)
	})
}

// P12: ForceUnlock by the same client ends the hold's context at once.
func TestVirtualForceUnlockBySelf(t *testing.T) {
	bhVirtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		l := rlock.NewLock(bhClient(t, rdb), "l")
		outer := bhLock(t, l, t.Context())
		inner := bhLock(t, l, outer)
		began := time.Now()
		freed, err := l.ForceUnlock(t.Context())
		bhOK(t, err)
		bhEqual(t, "freed", freed, true)
		<-inner.Done()
		<-outer.Done()
		bhEqual(t, "took", time.Since(began), 0)
		bhIs(t, outer.Err(), rlock.ErrLost)
		bhIs(t, inner.Err(), rlock.ErrLost)
		bhIs(t, l.Unlock(inner), rlock.ErrLost)
		bhIs(t, l.Unlock(outer), rlock.ErrLost)
	})
}

// P10, P12: ForceUnlock by another client is noticed soon where this client has a waiter, which hears of it.
func TestVirtualForceUnlockByAnother(t *testing.T) {
	bhVirtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		l := rlock.NewLock(bhClient(t, rdb), "l")
		other := rlock.NewLock(bhClient(t, redistest.PipeClient(t, m)), "l")
		for _, taken := range []bool{false, true} { // whether a third one has the lock when the message comes
			held := bhLock(t, l, t.Context())
			waiter := bhGo(func() (context.Context, error) { return l.Lock(t.Context()) })
			bhAsleep(time.Second)
			began := time.Now()
			if taken {
				m.Del("l")
				bhJavaHolds(t, rdb, 10*time.Second)
				rdb.Publish(t.Context(), bhChannel, "0")
			} else {
				_, err := other.ForceUnlock(t.Context())
				bhOK(t, err)
			}
			<-held.Done()
			if took := time.Since(began); took > 200*time.Millisecond {
				t.Errorf("noticed after %v", took)
			}
			bhIs(t, held.Err(), rlock.ErrLost)
			bhIs(t, l.Unlock(held), rlock.ErrLost)
			got := <-waiter
			bhOK(t, got.err)
			bhOK(t, l.Unlock(got.ctx))
		}
	})
}

// P10: a message while holding is a reason to ask, never a verdict.
func TestVirtualMessageIsNoVerdict(t *testing.T) {
	bhVirtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		l := rlock.NewLock(bhClient(t, rdb), "l")
		held := bhLock(t, l, t.Context())
		waiter := bhGo(func() (context.Context, error) { return l.Lock(t.Context()) })
		bhAsleep(time.Second)
		for range 5 {
			rdb.Publish(t.Context(), bhChannel, "0")
			bhAsleep(time.Second)
		}
		bhOK(t, held.Err())
		bhNone(t, waiter, time.Second, "the waiter got a held lock")
		bhOK(t, l.Unlock(held))
		bhOK(t, (<-waiter).err)
	})
}

// Shutdown: leases are renewed while it waits.
func TestVirtualShutdownRenews(t *testing.T) {
	bhVirtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		c := bhClient(t, rdb)
		l := rlock.NewLock(c, "l")
		held := bhLock(t, l, t.Context())
		down := make(chan error, 1)
		go func() { down <- c.Shutdown(t.Context()) }()
		bhAsleep(5 * time.Minute)
		bhOK(t, held.Err())
		bhOK(t, l.Unlock(held))
		bhOK(t, <-down)
	})
}

// Close ends the renewals: the lease runs out.
func TestVirtualCloseEndsRenewals(t *testing.T) {
	bhVirtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		c := bhClient(t, rdb)
		l := rlock.NewLock(c, "l")
		held := bhLock(t, l, t.Context())
		bhOK(t, c.Close())
		bhIs(t, held.Err(), rlock.ErrClosed)
		bhAsleep(31 * time.Second)
		bhEqual(t, "the key is there", m.Exists("l"), false)
		bhIs(t, l.Unlock(held), rlock.ErrLost)
	})
}

// Inv11, P4: a holder that was dropped without Unlock is not renewed, also where a cancellable context stands between
// the holder's context and the call.
func TestP4_DroppedHolderUnderWithCancel(t *testing.T) {
	bhVirtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		var log bhLog
		l := rlock.NewLock(bhClient(t, rdb, log.option()), "l")
		func() {
			ctx, cancel := context.WithCancel(rlock.NewHolder(context.Background()))
			_ = cancel
			bhLock(t, l, ctx)
		}()
		for range 7 { // two leases
			runtime.GC()
			runtime.GC()
			bhAsleep(10 * time.Second)
		}
		if m.Exists("l") {
			t.Errorf("a dropped holder is still renewed")
		}
		bhEqual(t, "log lines", log.count("dropped without Unlock"), 1)
	})
}

// WithLease's doc: the watchdog's lease is how long the lock stays taken after its process died. An explicit lease of an
// inner level is over with its unlock (nothing shortens what was promised, P11), and must not be what is renewed later.
func TestVirtualInnerLeaseIsRenewedAfterItsUnlock(t *testing.T) {
	bhVirtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		l := rlock.NewLock(bhClient(t, rdb), "l")
		held := bhLock(t, l, t.Context())
		inner, err := l.LockLease(held, 10*time.Minute)
		bhOK(t, err)
		bhOK(t, l.Unlock(inner))
		bhAsleep(20 * time.Minute)
		bhOK(t, held.Err())
		if ttl := m.TTL("l"); ttl > 30*time.Second {
			t.Errorf("20 minutes later the lease is renewed to %v", ttl)
		}
		bhOK(t, l.Unlock(held))
	})
}
