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

// A lease of 30 s is renewed every 10 s, and not more often, for as long as it is held; after the Unlock no
// renewal follows (Inv10), and the watchdog's goroutine ends (Inv9).
func TestRenewal(t *testing.T) {
	redistest.CheckGoroutines(t)
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		spy := locktest.SpyOn(rdb)
		l := rlock.NewLock(newClient(t, rdb), "l")
		held := take(t, l, t.Context())
		for range 600 {
			locktest.Sleep(time.Second)
			if ttl := m.TTL("l"); ttl < 19*time.Second || ttl > 30*time.Second {
				t.Fatalf("the key lives for %v", ttl)
			}
			locktest.NoError(t, held.Err())
		}
		if n := spy.Count("renew"); n < 59 || n > 63 {
			t.Errorf("%d renewals in ten minutes", n)
		}
		locktest.NoError(t, l.Unlock(held))
		n := spy.Count("renew")
		locktest.Sleep(time.Minute)
		locktest.Equal(t, "renewals after the Unlock", spy.Count("renew"), n)
		locktest.Equal(t, "the key is there", m.Exists("l"), false)
	})
}

// WithLease: the rhythm follows.
func TestRenewalOfAShortLease(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		l := rlock.NewLock(newClient(t, rdb, rlock.WithLease(3*time.Second)), "l")
		held := take(t, l, t.Context())
		for range 120 {
			locktest.Sleep(500 * time.Millisecond)
			if ttl := m.TTL("l"); ttl < 1800*time.Millisecond || ttl > 3*time.Second {
				t.Fatalf("the key lives for %v", ttl)
			}
		}
		locktest.NoError(t, held.Err())
		locktest.NoError(t, l.Unlock(held))
	})
}

// Inv3: an explicit lease is not renewed, and its context ends with ErrLost before Redis forgets it, but not much before.
func TestExplicitLease(t *testing.T) {
	for _, lease := range []time.Duration{time.Second, 5 * time.Second, 30 * time.Second, time.Hour} {
		locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
			l := rlock.NewLock(newClient(t, rdb), "l")
			began := time.Now()
			held, err := l.LockLease(t.Context(), lease)
			locktest.NoError(t, err)
			<-held.Done()
			left := m.TTL("l")
			if left < time.Millisecond+lease/100-time.Millisecond || !m.Exists("l") {
				t.Errorf("lease %v: the context ended with %v left in Redis", lease, left)
			}
			if took := time.Since(began); took < lease-lease/100-150*time.Millisecond {
				t.Errorf("lease %v: the context ended after %v", lease, took)
			}
			locktest.IsError(t, held.Err(), rlock.ErrLost, context.Canceled)
			locktest.IsError(t, context.Cause(held), rlock.ErrLost)
			locktest.IsError(t, l.Check(held), rlock.ErrLost)
			locktest.IsError(t, l.Unlock(held), rlock.ErrLost)
			locktest.IsError(t, l.Unlock(held), rlock.ErrNotHeld)
		})
	}
}

// P5: Err looks at the clock itself: at the deadline to the nanosecond it says ErrLost, whatever the watchdog does.
func TestP5_ErrLooksAtTheClock(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		l := rlock.NewLock(newClient(t, rdb), "l")
		for range 200 { // whoever runs first
			began := time.Now()
			held, err := l.LockLease(t.Context(), 500*time.Millisecond)
			locktest.NoError(t, err)
			deadline := began.Add(500*time.Millisecond - 6*time.Millisecond)
			time.Sleep(time.Until(deadline))
			locktest.IsError(t, held.Err(), rlock.ErrLost, context.Canceled)
			locktest.IsError(t, context.Cause(held), rlock.ErrLost)
			locktest.IsError(t, l.Unlock(held), rlock.ErrLost)
			locktest.Sleep(time.Second)
		}
	})
}

// P11: a re-entry with a shorter lease shortens nothing; with a longer one it lengthens the hold.
func TestReentryWithALease(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		l := rlock.NewLock(newClient(t, rdb), "l")
		outer, err := l.LockLease(t.Context(), 20*time.Second)
		locktest.NoError(t, err)
		inner, err := l.LockLease(outer, 2*time.Second)
		locktest.NoError(t, err)
		locktest.Equal(t, "TTL", m.TTL("l"), 20*time.Second)
		locktest.Sleep(3 * time.Second)
		locktest.NoError(t, inner.Err()) // one deadline a hold
		locktest.NoError(t, l.Unlock(inner))
		locktest.Equal(t, "TTL", m.TTL("l"), 17*time.Second)
		longer, err := l.LockLease(outer, time.Minute)
		locktest.NoError(t, err)
		locktest.Equal(t, "TTL", m.TTL("l"), time.Minute)
		locktest.NoError(t, l.Unlock(longer))
		locktest.Equal(t, "TTL", m.TTL("l"), time.Minute)
		locktest.Sleep(59 * time.Second)
		locktest.NoError(t, outer.Err())
		locktest.Sleep(time.Second)
		locktest.IsError(t, outer.Err(), rlock.ErrLost)
		locktest.IsError(t, l.Unlock(outer), rlock.ErrLost)
	})
}

// P11: a re-entry with a shorter lease inside a renewed hold changes nothing about its renewal.
func TestShortReentryInARenewedHold(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		l := rlock.NewLock(newClient(t, rdb), "l")
		outer := take(t, l, t.Context())
		inner, err := l.LockLease(outer, time.Second)
		locktest.NoError(t, err)
		for range 300 {
			locktest.Sleep(time.Second)
			if ttl := m.TTL("l"); ttl < 19*time.Second {
				t.Fatalf("the key lives for %v", ttl)
			}
		}
		locktest.NoError(t, inner.Err())
		locktest.NoError(t, l.Unlock(inner))
		locktest.NoError(t, l.Unlock(outer))
	})
}

// P11: a re-entry with lease 0 inside an explicit lease is renewed until its own Unlock, and not after it.
func TestP11_RenewedReentryInAnExplicitLease(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		spy := locktest.SpyOn(rdb)
		l := rlock.NewLock(newClient(t, rdb), "l")
		outer, err := l.LockLease(t.Context(), 5*time.Second)
		locktest.NoError(t, err)
		locktest.Sleep(4 * time.Second)
		inner := take(t, l, outer)
		locktest.Sleep(10 * time.Minute)
		locktest.NoError(t, inner.Err())
		locktest.NoError(t, outer.Err())
		locktest.NoError(t, l.Unlock(inner))
		locktest.NoError(t, outer.Err())
		renewals := spy.Count("renew")
		locktest.Sleep(30 * time.Second)
		locktest.Equal(t, "renewals after the inner Unlock", spy.Count("renew"), renewals)
		locktest.IsError(t, outer.Err(), rlock.ErrLost)
		locktest.IsError(t, l.Unlock(outer), rlock.ErrLost)
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
			locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
				l := rlock.NewLock(newClient(t, rdb), "l")
				user, cancel := wrap(t.Context())
				held := take(t, l, user)
				inner := take(t, l, held)
				locktest.Sleep(time.Minute)
				locktest.NoError(t, inner.Err())
				cancel()
				locktest.Sleep(31 * time.Second)
				locktest.Equal(t, "the key is there", m.Exists("l"), false)
				locktest.IsError(t, l.Check(inner), rlock.ErrLost)
				locktest.IsError(t, l.Unlock(inner), rlock.ErrLost)
				locktest.IsError(t, l.Unlock(held), rlock.ErrLost)
			})
		})
	}
}

// P11, Inv11: with two levels, the one whose context lives keeps the hold, the other one does not.
func TestP11_OneOfTwoLevelsEnds(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		l := rlock.NewLock(newClient(t, rdb), "l")
		outer := take(t, l, t.Context())
		middle, cancel := context.WithCancel(outer)
		inner := take(t, l, middle)
		cancel()
		locktest.Sleep(5 * time.Minute)
		locktest.IsError(t, inner.Err(), context.Canceled)
		locktest.NoError(t, outer.Err())
		locktest.NoError(t, l.Check(outer))
		locktest.IsError(t, l.Check(inner), context.Canceled)
		locktest.NoError(t, l.Unlock(inner))
		locktest.NoError(t, l.Unlock(outer))

		explicit, err := l.LockLease(t.Context(), 10*time.Second) // and the other way round: the kept one ends
		locktest.NoError(t, err)
		middle, cancel = context.WithCancel(explicit)
		take(t, l, middle)
		locktest.Sleep(5 * time.Minute)
		locktest.NoError(t, explicit.Err())
		cancel()
		locktest.Sleep(31 * time.Second)
		locktest.IsError(t, explicit.Err(), rlock.ErrLost)
	})
}

// A hold whose outer lock was unlocked first is renewed until its own Unlock (P11), but not beyond the user's context.
func TestP11_WrongOrderIsRenewed(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		c := newClient(t, rdb)
		a, b := rlock.NewLock(c, "a"), rlock.NewLock(c, "b")
		user, cancel := context.WithCancel(t.Context())
		inA := take(t, a, user)
		inB := take(t, b, inA)
		locktest.NoError(t, a.Unlock(inA))
		locktest.Sleep(5 * time.Minute)
		locktest.NoError(t, b.Check(inB))
		cancel()
		locktest.Sleep(31 * time.Second)
		locktest.Equal(t, "b is there", m.Exists("b"), false)
		locktest.IsError(t, b.Unlock(inB), rlock.ErrLost)
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
			held, err := l.Lock(context.WithValue(rlock.NewHolder(context.Background()), contextKey("k"), 1))
			_ = context.WithValue(held, contextKey("k"), 2)
			return err
		},
		"cancelled above": func(l *rlock.Lock) error {
			held, err := l.Lock(context.Background())
			_, cancel := context.WithTimeout(held, time.Minute)
			cancel()
			return err
		},
		"a timeout above that has passed": func(l *rlock.Lock) error {
			held, err := l.Lock(context.Background())
			_, cancel := context.WithTimeout(held, 5*time.Second)
			_ = cancel
			return err
		},
		"a function that was stopped": func(l *rlock.Lock) error {
			held, err := l.Lock(context.Background())
			context.AfterFunc(held, func() {})()
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
			locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
				var log locktest.Log
				l := rlock.NewLock(newClient(t, rdb, rlock.WithLogger(log.Logger())), "l")
				locktest.NoError(t, drop(l))
				for range 7 { // two leases
					runtime.GC()
					runtime.GC()
					locktest.Sleep(10 * time.Second)
				}
				locktest.Equal(t, "the key is there", m.Exists("l"), false)
				locktest.Equal(t, "log lines", log.Count("dropped without Unlock"), 1)
			})
		})
	}
}

// P4: what waits for the end of a hold's context, and is not cancelled, keeps the hold, and is told of its end: there is no other reference to
// it by which it could be.
func TestP4_WhatWaitsForTheEnd(t *testing.T) {
	for name, wait := range map[string]func(held context.Context, ended func()){
		"a function": func(held context.Context, ended func()) { context.AfterFunc(held, ended) },
		"a function under a value": func(held context.Context, ended func()) {
			context.AfterFunc(context.WithValue(held, contextKey("k"), 1), ended)
		},
		"a channel": func(held context.Context, ended func()) {
			derived, cancel := context.WithCancel(held)
			_ = cancel
			done := derived.Done()
			go func() { <-done; ended() }()
		},
	} {
		t.Run(name, func(t *testing.T) {
			locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
				l := rlock.NewLock(newClient(t, rdb), "l")
				var ended atomic.Bool
				func() {
					held, err := l.Lock(t.Context())
					locktest.NoError(t, err)
					wait(held, func() { ended.Store(true) })
				}()
				for range 7 { // two leases
					runtime.GC()
					runtime.GC()
					locktest.Sleep(10 * time.Second)
				}
				locktest.Equal(t, "the key is there", m.Exists("l"), true)
				locktest.Equal(t, "it was told of an end", ended.Load(), false)
				m.Del("l")
				locktest.Sleep(time.Minute)
				locktest.Equal(t, "it was told of the end", ended.Load(), true)
			})
		})
	}
}

// P4: a hold whose returned context was thrown away is renewed as long as a context with its holder is there.
func TestKeptHolder(t *testing.T) {
	for name, wrap := range map[string]func(context.Context) context.Context{
		"plain": func(ctx context.Context) context.Context { return ctx },
		"value": func(ctx context.Context) context.Context { return context.WithValue(ctx, contextKey("k"), 1) },
		"cancel": func(ctx context.Context) context.Context {
			ctx, cancel := context.WithCancel(ctx)
			context.AfterFunc(ctx, cancel)
			return ctx
		},
	} {
		t.Run(name, func(t *testing.T) {
			locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
				var log locktest.Log
				l := rlock.NewLock(newClient(t, rdb, rlock.WithLogger(log.Logger())), "l")
				ctx := rlock.NewHolder(context.Background())
				_, err := l.Lock(wrap(ctx))
				locktest.NoError(t, err)
				for range 12 {
					runtime.GC()
					runtime.GC()
					locktest.Sleep(10 * time.Second)
				}
				locktest.NoError(t, l.Check(ctx))
				locktest.Equal(t, "the log", log.String(), "")
				locktest.NoError(t, l.Unlock(ctx))
			})
		})
	}
}

// Renewals that fail are repeated; the context ends at its deadline, before Redis forgets (Inv3); if one gets
// through before, nothing happened.
func TestRenewalFails(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		spy := locktest.SpyOn(rdb)
		var log locktest.Log
		l := rlock.NewLock(newClient(t, rdb, rlock.WithLogger(log.Logger())), "l")
		fail := func(on bool) {
			spy.Wrap(func(ops []string, next func() error) error {
				if on && slices.Contains(ops, "renew") {
					return errors.New("no way")
				}
				return next()
			})
		}
		held := take(t, l, t.Context())
		fail(true)
		locktest.Sleep(28500 * time.Millisecond) // it is tried every second
		locktest.NoError(t, held.Err())
		if n := spy.Count("renew"); n < 10 {
			t.Errorf("%d attempts to renew", n)
		}
		fail(false)
		locktest.Sleep(5 * time.Minute)
		locktest.NoError(t, held.Err())
		fail(true)
		<-held.Done()
		if !m.Exists("l") {
			t.Errorf("the context ended after the lease")
		}
		locktest.IsError(t, held.Err(), rlock.ErrLost)
		synctest.Wait() // for the log
		locktest.Equal(t, "log lines of the loss", log.Count("lock lost"), 1)
		if log.Count("no way") == 0 {
			t.Errorf("the log does not tell of the failures")
		}
		locktest.IsError(t, l.Unlock(held), rlock.ErrLost)
	})
}

// A renewal that finds the hold gone ends its context promptly, and never brings it back (Inv10).
func TestRenewalFindsItGone(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		l := rlock.NewLock(newClient(t, rdb), "l")
		held := take(t, l, t.Context())
		locktest.Sleep(5 * time.Second)
		m.Del("l")
		began := time.Now()
		<-held.Done()
		if took := time.Since(began); took > 10*time.Second { // a third of the lease
			t.Errorf("the loss was found after %v", took)
		}
		locktest.IsError(t, held.Err(), rlock.ErrLost)
		locktest.Sleep(time.Minute)
		locktest.Equal(t, "the key is there", m.Exists("l"), false)
		locktest.IsError(t, l.Unlock(held), rlock.ErrLost)
	})
}

// P12: ForceUnlock by the same client ends the hold's context at once.
func TestForceUnlockBySelf(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		l := rlock.NewLock(newClient(t, rdb), "l")
		outer := take(t, l, t.Context())
		inner := take(t, l, outer)
		began := time.Now()
		freed, err := l.ForceUnlock(t.Context())
		locktest.NoError(t, err)
		locktest.Equal(t, "freed", freed, true)
		<-inner.Done()
		<-outer.Done()
		locktest.Equal(t, "took", time.Since(began), 0)
		locktest.IsError(t, outer.Err(), rlock.ErrLost)
		locktest.IsError(t, inner.Err(), rlock.ErrLost)
		locktest.IsError(t, l.Unlock(inner), rlock.ErrLost)
		locktest.IsError(t, l.Unlock(outer), rlock.ErrLost)
	})
}

// P10, P12: ForceUnlock by another client is noticed soon where this client has a waiter, which hears of it.
func TestForceUnlockByAnother(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		l := rlock.NewLock(newClient(t, rdb), "l")
		other := rlock.NewLock(newClient(t, redistest.PipeClient(t, m)), "l")
		for _, taken := range []bool{false, true} { // whether a third one has the lock when the message comes
			held := take(t, l, t.Context())
			waiter := locktest.StartLock(func() (context.Context, error) { return l.Lock(t.Context()) })
			locktest.Sleep(time.Second)
			began := time.Now()
			if taken {
				m.Del("l")
				javaHolds(t, rdb, 10*time.Second)
				rdb.Publish(t.Context(), lockChannel, "0")
			} else {
				_, err := other.ForceUnlock(t.Context())
				locktest.NoError(t, err)
			}
			<-held.Done()
			if took := time.Since(began); took > 200*time.Millisecond {
				t.Errorf("noticed after %v", took)
			}
			locktest.IsError(t, held.Err(), rlock.ErrLost)
			locktest.IsError(t, l.Unlock(held), rlock.ErrLost)
			got := <-waiter
			locktest.NoError(t, got.Err)
			locktest.NoError(t, l.Unlock(got.Ctx))
		}
	})
}

// P10: a message while holding is a reason to ask, never a verdict.
func TestMessageIsNoVerdict(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		l := rlock.NewLock(newClient(t, rdb), "l")
		held := take(t, l, t.Context())
		waiter := locktest.StartLock(func() (context.Context, error) { return l.Lock(t.Context()) })
		locktest.Sleep(time.Second)
		for range 5 {
			rdb.Publish(t.Context(), lockChannel, "0")
			locktest.Sleep(time.Second)
		}
		locktest.NoError(t, held.Err())
		locktest.NothingComes(t, waiter, time.Second, "the waiter got a held lock")
		locktest.NoError(t, l.Unlock(held))
		locktest.NoError(t, (<-waiter).Err)
	})
}

// Shutdown: leases are renewed while it waits.
func TestShutdownRenews(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		c := newClient(t, rdb)
		l := rlock.NewLock(c, "l")
		held := take(t, l, t.Context())
		down := make(chan error, 1)
		go func() { down <- c.Shutdown(t.Context()) }()
		locktest.Sleep(5 * time.Minute)
		locktest.NoError(t, held.Err())
		locktest.NoError(t, l.Unlock(held))
		locktest.NoError(t, <-down)
	})
}

// Close ends the renewals: the lease runs out.
func TestCloseEndsRenewals(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		c := newClient(t, rdb)
		l := rlock.NewLock(c, "l")
		held := take(t, l, t.Context())
		locktest.NoError(t, c.Close())
		locktest.IsError(t, held.Err(), rlock.ErrClosed)
		locktest.Sleep(31 * time.Second)
		locktest.Equal(t, "the key is there", m.Exists("l"), false)
		locktest.IsError(t, l.Unlock(held), rlock.ErrLost)
	})
}

// Inv11, P4: a holder that was dropped without Unlock is not renewed, also where a cancellable context stands between
// the holder's context and the call.
func TestP4_DroppedHolderUnderWithCancel(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		var log locktest.Log
		l := rlock.NewLock(newClient(t, rdb, rlock.WithLogger(log.Logger())), "l")
		func() {
			ctx, cancel := context.WithCancel(rlock.NewHolder(context.Background()))
			_ = cancel
			_, err := l.Lock(ctx)
			locktest.NoError(t, err)
		}()
		for range 7 { // two leases
			runtime.GC()
			runtime.GC()
			locktest.Sleep(10 * time.Second)
		}
		if m.Exists("l") {
			t.Errorf("a dropped holder is still renewed")
		}
		locktest.Equal(t, "log lines", log.Count("dropped without Unlock"), 1)
	})
}

// WithLease's doc: the watchdog's lease is how long the lock stays taken after its process died. An explicit lease of an
// inner level is over with its unlock (nothing shortens what was promised, P11), and must not be what is renewed later.
func TestInnerLeaseIsRenewedAfterItsUnlock(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		l := rlock.NewLock(newClient(t, rdb), "l")
		held := take(t, l, t.Context())
		inner, err := l.LockLease(held, 10*time.Minute)
		locktest.NoError(t, err)
		locktest.NoError(t, l.Unlock(inner))
		locktest.Sleep(20 * time.Minute)
		locktest.NoError(t, held.Err())
		if ttl := m.TTL("l"); ttl > 30*time.Second {
			t.Errorf("20 minutes later the lease is renewed to %v", ttl)
		}
		locktest.NoError(t, l.Unlock(held))
	})
}
