package rlock_test

import (
	"context"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/rlock"
)

// acquiresOf is a hook that is called in place of sending an acquire of the lock with this name.
func acquiresOf(name string, instead func(send func() error) error) locktest.Hook {
	return func(_ context.Context, cmd redis.Cmder, send func() error) error {
		if slices.Contains(locktest.Ops(cmd.Args()), "acquire") && slices.Contains(textsOf(cmd), name) {
			return instead(send)
		}
		return send()
	}
}

// busyWith keeps the acquires of the locks a and b back until the gate is closed.
func busyWith(rdb *redis.Client) (gate chan struct{}) {
	gate = make(chan struct{})
	for _, name := range []string{"a", "b"} {
		rdb.AddHook(acquiresOf(name, func(send func() error) error {
			<-gate
			return send()
		}))
	}
	return gate
}

// keepBusy locks a and b, by two commands: they are all the batches that a client has under way. done waits for the locks, and unlocks them.
func keepBusy(t *testing.T, c *rlock.Client) (done func()) {
	t.Helper()
	var all []func()
	for _, name := range []string{"a", "b"} {
		l := rlock.NewLock(c, name)
		call := locktest.StartLock(func() (context.Context, error) { return l.Lock(t.Context()) })
		synctest.Wait()
		all = append(all, func() {
			got := <-call
			locktest.NoError(t, got.Err)
			locktest.NoError(t, l.Unlock(got.Ctx))
		})
	}
	return func() {
		for _, one := range all {
			one()
		}
	}
}

// P3, Inv9: a call that gives up before its attempt has left leaves nothing behind: the attempt is not sent, and neither is a release.
func TestP3_GivenUpBeforeItLeft(t *testing.T) {
	for name, call := range map[string]func(ctx context.Context, l *rlock.Lock) error{
		"Lock":    func(ctx context.Context, l *rlock.Lock) error { _, err := l.Lock(ctx); return err },
		"TryLock": func(ctx context.Context, l *rlock.Lock) error { _, err := l.TryLock(ctx, 0, 0); return err },
	} {
		t.Run(name, func(t *testing.T) {
			locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
				c := newClient(t, rdb)
				gate := busyWith(rdb)
				rdb.AddHook(acquiresOf("l", func(func() error) error {
					t.Error("the attempt is sent")
					return io.EOF
				}))
				done := keepBusy(t, c)
				ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
				defer cancel()
				locktest.IsError(t, call(ctx, rlock.NewLock(c, "l")), context.DeadlineExceeded)
				locktest.Equal(t, "books", c.Books(), "2 locks, 0 holds, 0 releases") // of the busy ones
				close(gate)
				done()
				locktest.Equal(t, "books", c.Books(), "")
			})
		})
	}
}

// The repeat of an attempt that got no answer goes by itself: it does not wait for the batches that are under way.
func TestRepeatGoesAlone(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		c := newClient(t, rdb)
		var first atomic.Bool
		rdb.AddHook(acquiresOf("l", func(send func() error) error {
			if first.CompareAndSwap(false, true) {
				return io.EOF
			}
			return send()
		}))
		gate := busyWith(rdb)
		l, began := rlock.NewLock(c, "l"), time.Now()
		call := locktest.StartLock(func() (context.Context, error) { return l.TryLock(t.Context(), 0, 0) })
		synctest.Wait() // it pauses
		done := keepBusy(t, c)
		got := <-call
		locktest.NoError(t, got.Err)
		if took := got.At.Sub(began); took > 50*time.Millisecond { // 10, and 100 for the next batch
			t.Errorf("it has the lock after %v", took)
		}
		close(gate)
		done()
		locktest.NoError(t, l.Unlock(got.Ctx))
	})
}

// P3, Inv6: a call gives up while the repeat of its attempt hangs: it is back at once, and what the repeat takes is released.
func TestP3_GivenUpWhileItsRepeatHangs(t *testing.T) {
	for name, call := range map[string]func(ctx context.Context, l *rlock.Lock) error{
		"Lock":    func(ctx context.Context, l *rlock.Lock) error { _, err := l.Lock(ctx); return err },
		"TryLock": func(ctx context.Context, l *rlock.Lock) error { _, err := l.TryLock(ctx, 0, 0); return err },
	} {
		t.Run(name, func(t *testing.T) {
			locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
				c := newClient(t, rdb, rlock.WithLease(3*time.Second))
				for _, name := range []string{"acquire", "try"} {
					locktest.NoError(t, rdb.ScriptLoad(t.Context(), locktest.ScriptText(name)).Err())
				}
				var first atomic.Bool
				rdb.AddHook(acquiresOf("l", func(send func() error) error {
					if first.CompareAndSwap(false, true) {
						return io.EOF
					}
					time.Sleep(time.Second)
					return send()
				}))
				ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
				defer cancel()
				began := time.Now()
				locktest.IsError(t, call(ctx, rlock.NewLock(c, "l")), context.DeadlineExceeded)
				locktest.Equal(t, "took", time.Since(began), 100*time.Millisecond)
				locktest.Sleep(1500 * time.Millisecond)
				locktest.Equal(t, "the lock is taken", m.Exists("l"), false)
				locktest.Sleep(5 * time.Second)
				locktest.Equal(t, "books", c.Books(), "")
			})
		})
	}
}

// Inv12: a call with wait 0 rides errors out that go away for a second, or for as long as the patience where that is shorter.
func TestInv12_OneTryRidesOutForAMoment(t *testing.T) {
	for patience, want := range map[time.Duration]time.Duration{10 * time.Second: 900 * time.Millisecond, 100 * time.Millisecond: 70 * time.Millisecond} {
		locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
			l := rlock.NewLock(newClient(t, rdb, rlock.WithPatience(patience)), "l")
			rdb.AddHook(acquiresOf("l", func(func() error) error { return locktest.Reply("LOADING Redis is loading the dataset in memory") }))
			began := time.Now()
			_, err := l.TryLock(t.Context(), 0, 0)
			locktest.ErrorSays(t, err, "LOADING")
			locktest.Equal(t, "took", time.Since(began), want) // tries after 0, 10, 30, 70, 150, 275 ms, and so on to 900
			locktest.Sleep(time.Minute)
		})
	}
}

// Inv12: a waiter that is told of errors asks again after 10 ms, then after twice as long each time, up to half a second. An answer ends
// that: after it the waiter begins anew, and its patience too.
func TestInv12_PausesOfAWaiter(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		c := newClient(t, rdb, rlock.WithPatience(10*time.Second))
		l := rlock.NewLock(c, "l")
		javaHolds(t, rdb, time.Hour)
		var mu sync.Mutex // guards the three below
		var loading bool
		var began time.Time
		var asked []time.Duration // in ms, since began, the first of them
		rdb.AddHook(acquiresOf("l", func(send func() error) error {
			mu.Lock()
			refuses := loading
			if refuses && len(asked) == 0 {
				began = time.Now()
			}
			if refuses {
				asked = append(asked, time.Since(began)/time.Millisecond)
			}
			mu.Unlock()
			if !refuses {
				return send()
			}
			return locktest.Reply("LOADING Redis is loading the dataset in memory")
		}))
		load := func(on bool) {
			mu.Lock()
			defer mu.Unlock()
			loading, asked = on, nil
		}
		told := func() ([]time.Duration, time.Time) {
			mu.Lock()
			defer mu.Unlock()
			return slices.Clone(asked), began
		}
		outage := func(begin func(), d time.Duration, want ...time.Duration) {
			t.Helper()
			load(true)
			begin()
			for times, _ := told(); len(times) == 0; times, _ = told() {
				locktest.Sleep(100 * time.Millisecond)
			}
			_, first := told()
			locktest.Sleep(time.Until(first.Add(d)))
			times, _ := told()
			load(false)
			locktest.DeepEqual(t, "attempts at", times, want)
			locktest.Sleep(time.Minute) // there are answers
		}
		var call <-chan locktest.Result
		outage(func() {
			call = locktest.StartLock(func() (context.Context, error) { return l.Lock(t.Context()) })
		}, 2500*time.Millisecond, 0, 10, 30, 70, 150, 310, 630, 1130, 1630, 2130)
		outage(func() {}, 200*time.Millisecond, 0, 10, 30, 70, 150)
		m.Del("l")
		got := <-call
		locktest.NoError(t, got.Err)
		locktest.NoError(t, l.Unlock(got.Ctx))
	})
}

// Close ends a call with wait 0 whose attempt hangs, at once.
func TestCloseWhileATryHangs(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		c := newClient(t, rdb)
		thaw := make(chan struct{})
		defer close(thaw)
		rdb.AddHook(acquiresOf("l", func(send func() error) error {
			<-thaw
			return send()
		}))
		call := locktest.StartLock(func() (context.Context, error) { return rlock.NewLock(c, "l").TryLock(t.Context(), 0, 0) })
		locktest.Sleep(time.Second / 2)
		began := time.Now()
		locktest.NoError(t, c.Close())
		got := <-call
		locktest.IsError(t, got.Err, rlock.ErrClosed)
		if late := got.At.Sub(began); late > 100*time.Millisecond {
			t.Errorf("ErrClosed came %v after Close", late)
		}
	})
}

// P6: an attempt that has no answer when its lease is over is of no use: the call asks again, and has the lock. What the attempt takes later
// is released.
func TestP6_AttemptThatHangsForItsLease(t *testing.T) {
	const lease = 700 * time.Millisecond
	for name, call := range map[string]func(ctx context.Context, l *rlock.Lock) (context.Context, error){
		"LockLease": func(ctx context.Context, l *rlock.Lock) (context.Context, error) { return l.LockLease(ctx, lease) },
		"TryLock":   func(ctx context.Context, l *rlock.Lock) (context.Context, error) { return l.TryLock(ctx, 0, lease) },
	} {
		t.Run(name, func(t *testing.T) {
			locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
				c := newClient(t, rdb)
				l := rlock.NewLock(c, "l")
				var first atomic.Bool
				rdb.AddHook(acquiresOf("l", func(send func() error) error {
					if first.CompareAndSwap(false, true) {
						time.Sleep(5 * time.Second)
					}
					return send()
				}))
				began := time.Now()
				held, err := call(t.Context(), l)
				locktest.NoError(t, err)
				locktest.Equal(t, "took", time.Since(began), lease+10*time.Millisecond)
				locktest.NoError(t, l.Unlock(held))
				locktest.Sleep(10 * time.Second)
				locktest.Equal(t, "the lock is taken", m.Exists("l"), false)
				locktest.Equal(t, "books", c.Books(), "")
			})
		})
	}
}
