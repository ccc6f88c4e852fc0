package rlock_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/fencelock/fencelock/rlock"
)

// The waiters of one client get the lock in the order of their arrival.
func TestFIFO(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		wantOrder(t, rlock.NewLock(newClient(t, rdb), "l"), 100)
	})
}

// wantOrder lines up waiters behind a hold, releases it, and requires that each gets the lock in its turn.
func wantOrder(t *testing.T, l *rlock.Lock, n int) {
	t.Helper()
	held := take(t, l, t.Context())
	turns := enterInOrder(t, l, n)
	began := time.Now()
	locktest.NoError(t, l.Unlock(held))
	for i := range n {
		if got := <-turns; got != i {
			t.Fatalf("waiter %d came in place of %d", got, i)
		}
	}
	if took := time.Since(began); took > time.Duration(n)*time.Millisecond+10*time.Millisecond {
		t.Errorf("the handoffs took %v", took)
	}
	locktest.Sleep(10 * time.Millisecond)
	wantLocked(t, l, false)
}

// enterInOrder starts waiters one after the other; each says its number when it has the lock, keeps it for a millisecond and
// releases it.
func enterInOrder(t *testing.T, l *rlock.Lock, n int) <-chan int {
	turns := make(chan int, n)
	for i := range n {
		go func() {
			err := l.Do(t.Context(), func(context.Context) error {
				turns <- i
				time.Sleep(time.Millisecond)
				return nil
			})
			if err != nil {
				t.Errorf("waiter %d: %v", i, err)
			}
		}()
		synctest.Wait() // it is in the queue
	}
	return turns
}

// Ten thousand waiters have one subscription, only the leader asks Redis, and they get the lock in order. For
// the sake of time only the first two thousand do; the others give up at once. Nothing is left of them (Inv9).
func TestManyWaiters(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		const n, turn = 10_000, 2_000
		ctx, giveUp := context.WithCancel(t.Context())
		defer giveUp()
		spy := locktest.SpyOn(rdb)
		l := rlock.NewLock(newClient(t, rdb), "l")
		other := rlock.NewLock(newClient(t, redistest.PipeClient(t, m)), "l")
		held := take(t, other, t.Context())
		turns := make(chan int, n)
		for i := range n {
			go func() {
				time.Sleep(time.Duration(i) * time.Microsecond) // in order
				held, err := l.Lock(ctx)
				if err != nil {
					if i < turn || !errors.Is(err, context.Canceled) {
						t.Errorf("waiter %d: %v", i, err)
					}
					return
				}
				turns <- i
				if i == turn-1 {
					giveUp()
				}
				if err := l.Unlock(held); err != nil {
					t.Errorf("waiter %d: %v", i, err)
				}
			}()
		}
		locktest.Sleep(30 * time.Second) // until the poll has backed off
		before := spy.Count("acquire")
		locktest.Sleep(10 * time.Minute)
		if asked := spy.Count("acquire") - before; asked > 61 {
			t.Errorf("%d acquires in ten idle minutes", asked)
		}
		locktest.Equal(t, "subscriptions", m.PubSubNumSub(lockChannel)[lockChannel], 2) // of the waiters' client, and of the holder's
		locktest.NoError(t, other.Unlock(held))
		for i := range turn {
			if got := <-turns; got != i {
				t.Fatalf("waiter %d came in place of %d", got, i)
			}
		}
		locktest.Sleep(5 * time.Second)
		locktest.Equal(t, "turns after the last", len(turns), 0)
		locktest.Equal(t, "subscriptions left", len(m.PubSubChannels("*")), 0)
		locktest.Equal(t, "keys left", len(m.Keys()), 0)
	})
}

// A leader that gives up hands the lead on; one in the middle that gives up is not missed.
func TestWaitersGiveUp(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		l := rlock.NewLock(newClient(t, rdb), "l")
		other := rlock.NewLock(newClient(t, redistest.PipeClient(t, m)), "l")
		held := take(t, other, t.Context())
		var calls []<-chan locktest.Result
		var cancels []context.CancelFunc
		for range 6 {
			ctx, cancel := context.WithCancel(t.Context())
			calls = append(calls, locktest.StartLock(func() (context.Context, error) { return l.Lock(ctx) }))
			cancels = append(cancels, cancel)
			synctest.Wait()
		}
		locktest.Sleep(time.Minute)
		for _, i := range []int{3, 0, 1, 5} { // the middle, the leader, the next leader, the last
			cancels[i]()
			locktest.IsError(t, (<-calls[i]).Err, context.Canceled)
		}
		locktest.Sleep(time.Second)
		freed := time.Now()
		locktest.NoError(t, other.Unlock(held))
		for _, i := range []int{2, 4} {
			got := <-calls[i]
			locktest.NoError(t, got.Err)
			locktest.Equal(t, "late", time.Since(freed), 0)
			locktest.NoError(t, l.Unlock(got.Ctx))
		}
		for _, cancel := range cancels {
			cancel()
		}
	})
}

// Inv8: the leader gives up in the very moment in which the lock becomes free: the next one gets it at once.
func TestLeaderGivesUpAtTheRelease(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		l := rlock.NewLock(newClient(t, rdb), "l")
		for i := range 200 {
			held := take(t, l, t.Context())
			ctx, giveUp := context.WithCancel(t.Context())
			first := locktest.StartLock(func() (context.Context, error) { return l.Lock(ctx) })
			synctest.Wait()
			second := locktest.StartLock(func() (context.Context, error) { return l.Lock(t.Context()) })
			locktest.Sleep(10 * time.Millisecond)
			freed := time.Now()
			unlocked := make(chan error, 1)
			if i%2 == 0 {
				go giveUp()
				unlocked <- l.Unlock(held)
			} else {
				go func() { unlocked <- l.Unlock(held) }()
				giveUp()
			}
			if got := <-first; got.Err == nil {
				_ = l.Unlock(got.Ctx)
			}
			locktest.NoError(t, <-unlocked)
			got := <-second
			locktest.NoError(t, got.Err)
			if late := got.At.Sub(freed); late > 110*time.Millisecond { // the release behind the first may take its turn
				t.Errorf("the next waiter slept %v on a free lock", late)
			}
			locktest.NoError(t, l.Unlock(got.Ctx))
			giveUp()
		}
	})
}

// Inv6, Inv12: a wait that is over says ErrNotAcquired exactly then, in first place and behind others.
func TestWaitEnds(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		l := rlock.NewLock(newClient(t, rdb), "l")
		other := rlock.NewLock(newClient(t, redistest.PipeClient(t, m)), "l")
		for _, holder := range []*rlock.Lock{l, other} {
			held := take(t, holder, t.Context())
			began := time.Now()
			waits := []time.Duration{3 * time.Second, time.Second, 1500 * time.Millisecond, time.Millisecond, time.Minute}
			var calls []<-chan locktest.Result
			for _, wait := range waits {
				calls = append(calls, locktest.StartLock(func() (context.Context, error) { return l.TryLock(t.Context(), wait, 0) }))
				synctest.Wait()
			}
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			bounded := locktest.StartLock(func() (context.Context, error) { return l.TryLock(ctx, time.Minute, 0) })
			for i, wait := range waits {
				got := <-calls[i]
				locktest.IsError(t, got.Err, rlock.ErrNotAcquired)
				locktest.IsNotError(t, got.Err, context.DeadlineExceeded)
				locktest.Equal(t, "waited", got.At.Sub(began), wait)
			}
			got := <-bounded
			locktest.IsError(t, got.Err, context.DeadlineExceeded)
			locktest.IsNotError(t, got.Err, rlock.ErrNotAcquired)
			locktest.Equal(t, "waited", got.At.Sub(began), 2*time.Second)
			cancel()
			locktest.NoError(t, holder.Unlock(held))
		}
	})
}

// A context that ends with a cause of its own while it waits behind others.
func TestCauseOfAWait(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		l := rlock.NewLock(newClient(t, rdb), "l")
		held := take(t, l, t.Context())
		why := errors.New("the user's reason")
		ctx, cancel := context.WithTimeoutCause(t.Context(), 2*time.Second, why)
		defer cancel()
		_, err := l.Lock(ctx)
		locktest.IsError(t, err, why, context.DeadlineExceeded)
		locktest.NoError(t, l.Unlock(held))
	})
}

// Inv8, P10: a plain DEL sends no message: the poll finds it, within ten intervals while the subscription works.
func TestPlainDel(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		l := rlock.NewLock(newClient(t, rdb), "l")
		javaHolds(t, rdb, time.Hour)
		call := locktest.StartLock(func() (context.Context, error) { return l.Lock(t.Context()) })
		locktest.Sleep(5 * time.Minute)
		m.Del("l")
		began := time.Now()
		got := <-call
		locktest.NoError(t, got.Err)
		if took := got.At.Sub(began); took > 10*time.Second {
			t.Errorf("the DEL was found after %v", took)
		}
		locktest.NoError(t, l.Unlock(got.Ctx))
	})
}

// P7: a key without an expiry is waited for, by polling every interval.
func TestKeyWithoutExpiry(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		l := rlock.NewLock(newClient(t, rdb), "l")
		javaHolds(t, rdb, 0)
		_, err := l.TryLock(t.Context(), 0, 0)
		locktest.IsError(t, err, rlock.ErrNotAcquired)
		call := locktest.StartLock(func() (context.Context, error) { return l.Lock(t.Context()) })
		locktest.Sleep(5 * time.Minute)
		locktest.Equal(t, "field", fieldInRedis(t, rdb), javaField)
		locktest.Equal(t, "TTL", m.TTL("l"), 0)
		m.Del("l")
		began := time.Now()
		got := <-call
		locktest.NoError(t, got.Err)
		if took := got.At.Sub(began); took > time.Second {
			t.Errorf("the DEL was found after %v", took)
		}
		locktest.NoError(t, l.Unlock(got.Ctx))
	})
}

// Inv8: the holder's TTL wakes the waiter to the millisecond, its release at once.
func TestRedisson(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		l := rlock.NewLock(newClient(t, rdb), "l")
		javaHolds(t, rdb, 25*time.Second)
		began := time.Now()
		held := take(t, l, t.Context())
		if took := time.Since(began); took < 25*time.Second || took > 25*time.Second+2*time.Millisecond {
			t.Errorf("a lease of 25 s was waited for for %v", took)
		}
		locktest.NoError(t, l.Unlock(held))

		javaHolds(t, rdb, time.Hour)
		call := locktest.StartLock(func() (context.Context, error) { return l.Lock(t.Context()) })
		locktest.Sleep(time.Minute)
		m.Del("l")
		rdb.Publish(t.Context(), lockChannel, "0")
		freed := time.Now()
		got := <-call
		locktest.NoError(t, got.Err)
		locktest.Equal(t, "woken after", got.At.Sub(freed), 0)
		locktest.NoError(t, l.Unlock(got.Ctx))
	})
}

// Inv8: a hold of this client that is lost frees its waiters when the lease in Redis is over, and no later.
func TestWaiterBehindALostHold(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		l := rlock.NewLock(newClient(t, rdb), "l")
		began := time.Now()
		held, err := l.LockLease(t.Context(), 10*time.Second)
		locktest.NoError(t, err)
		call := locktest.StartLock(func() (context.Context, error) { return l.Lock(t.Context()) })
		got := <-call
		locktest.NoError(t, got.Err)
		locktest.IsError(t, held.Err(), rlock.ErrLost)
		if took := got.At.Sub(began); took < 10*time.Second || took > 10*time.Second+2*time.Millisecond {
			t.Errorf("a lease of 10 s was waited for for %v", took)
		}
		locktest.IsError(t, l.Unlock(held), rlock.ErrLost)
		locktest.NoError(t, got.Ctx.Err())
		wantHolds(t, l, got.Ctx, 1)
		locktest.NoError(t, l.Unlock(got.Ctx))
	})
}

// A call of the same holder from elsewhere waits, and says so once, after the poll interval.
func TestSameHolderElsewhere(t *testing.T) {
	const line = "held by this holder through another context; a nested call needs the ctx that Lock returned"
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		var log locktest.Log
		l := rlock.NewLock(newClient(t, rdb, rlock.WithLogger(log.Logger())), "l")
		ctx := rlock.NewHolder(t.Context())
		take(t, l, ctx)
		_, err := l.TryLock(ctx, 0, 0)
		locktest.IsError(t, err, rlock.ErrNotAcquired)
		calls := []<-chan locktest.Result{
			locktest.StartLock(func() (context.Context, error) { return l.Lock(ctx) }),
			locktest.StartLock(func() (context.Context, error) { return l.Lock(ctx) }),
		}
		locktest.Sleep(999 * time.Millisecond)
		locktest.Equal(t, "log lines before the poll interval", log.Count(line), 0)
		locktest.Sleep(2 * time.Millisecond)
		locktest.Equal(t, "log lines after it", log.Count(line), 1)
		locktest.Sleep(10 * time.Minute)
		locktest.Equal(t, "log lines later", log.Count(line), 1)
		locktest.NoError(t, l.Check(ctx)) // renewed meanwhile
		for range calls {
			locktest.NoError(t, l.Unlock(ctx))
			locktest.Sleep(time.Second)
		}
		locktest.NoError(t, (<-calls[0]).Err)
		locktest.NoError(t, (<-calls[1]).Err)
		locktest.NoError(t, l.Unlock(ctx))
		locktest.IsError(t, l.Unlock(ctx), rlock.ErrNotHeld)
	})
}

// It says so as well where a call of another holder waits before it.
func TestSameHolderBehindAnother(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		var log locktest.Log
		l := rlock.NewLock(newClient(t, rdb, rlock.WithLogger(log.Logger())), "l")
		holder := rlock.NewHolder(t.Context())
		take(t, l, holder)
		first := locktest.StartLock(func() (context.Context, error) { return l.Lock(t.Context()) })
		synctest.Wait()
		second := locktest.StartLock(func() (context.Context, error) { return l.Lock(holder) })
		locktest.Sleep(1001 * time.Millisecond)
		locktest.Equal(t, "log lines", log.Count("held by this holder through another context"), 1)
		locktest.NoError(t, l.Unlock(holder))
		for _, call := range []<-chan locktest.Result{first, second} {
			got := <-call
			locktest.NoError(t, got.Err)
			locktest.NoError(t, l.Unlock(got.Ctx))
		}
	})
}

// A call that waits with the context of an outer level re-enters when the inner level, of a sibling, is
// unlocked; no message tells it to.
func TestSiblingReenters(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		l := rlock.NewLock(newClient(t, rdb), "l")
		outer := take(t, l, t.Context())
		for range 50 {
			sibling := take(t, l, outer)
			_, err := l.TryLock(outer, 0, 0)
			locktest.IsError(t, err, rlock.ErrNotAcquired)
			call := locktest.StartLock(func() (context.Context, error) { return l.Lock(outer) })
			locktest.Sleep(100 * time.Millisecond)
			freed := time.Now()
			locktest.NoError(t, l.Unlock(sibling))
			got := <-call
			locktest.NoError(t, got.Err)
			locktest.Equal(t, "woken after", got.At.Sub(freed), 0)
			wantHolds(t, l, got.Ctx, 2)
			locktest.NoError(t, l.Unlock(got.Ctx))
		}
		locktest.NoError(t, l.Unlock(outer))
	})
}

// A wait with the context of a hold of another lock ends with that hold's loss.
func TestWaitEndsWithTheOuterHold(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		c := newClient(t, rdb)
		a, b := rlock.NewLock(c, "a"), rlock.NewLock(c, "b")
		stranger := take(t, b, t.Context())
		inA, err := a.LockLease(t.Context(), 5*time.Second)
		locktest.NoError(t, err)
		began := time.Now()
		got, err := b.Lock(inA)
		locktest.IsError(t, err, rlock.ErrLost, context.Canceled)
		locktest.IsError(t, b.Unlock(got), rlock.ErrNotHeld)
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("it waited for %v", took)
		}
		locktest.NoError(t, b.Unlock(stranger))
		locktest.IsError(t, a.Unlock(inA), rlock.ErrLost)
	})
}

// P15: TryLock with wait 0 does not ask Redis what the client knows, and asks when its knowledge is older than a second.
func TestTryLockAsksNobody(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		spy := locktest.SpyOn(rdb)
		l := rlock.NewLock(newClient(t, rdb), "l")
		held := take(t, l, t.Context())
		before := spy.Count("acquire")
		for range 10 {
			_, err := l.TryLock(t.Context(), 0, 0)
			locktest.IsError(t, err, rlock.ErrNotAcquired)
		}
		locktest.Equal(t, "acquires", spy.Count("acquire"), before)
		m.Del("l")
		locktest.Sleep(1001 * time.Millisecond)
		next, err := l.TryLock(t.Context(), 0, 0)
		locktest.NoError(t, err)
		locktest.IsError(t, held.Err(), rlock.ErrLost)
		locktest.NoError(t, l.Unlock(next))
	})
}

// P15: a call that waits for a hold of its own client asks Redis nothing either: it will be told.
func TestWaitForAnOwnHoldAsksNobody(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		spy := locktest.SpyOn(rdb)
		l := rlock.NewLock(newClient(t, rdb), "l")
		held := take(t, l, t.Context())
		spy.Reset()
		_, err := l.TryLock(t.Context(), 500*time.Millisecond, 0)
		locktest.IsError(t, err, rlock.ErrNotAcquired)
		locktest.Equal(t, "acquires", spy.Count("acquire"), 0)
		locktest.NoError(t, l.Unlock(held))
	})
}

// Inv8: no waiter sleeps on a free lock. The message of a release arrives before the reply to it; the leader that takes
// the message gives up; the next in the queue becomes the leader while the client still believes in its own hold. When the
// reply comes, the new leader must look.
func TestNextLeaderSleepsOnAFreeLock(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		spy := locktest.SpyOn(rdb)
		l := rlock.NewLock(newClient(t, rdb), "l")
		locktest.NoError(t, l.Unlock(take(t, l, t.Context()))) // the server has the scripts
		held := take(t, l, t.Context())
		leader, giveUp := context.WithCancel(t.Context())
		first := locktest.StartLock(func() (context.Context, error) { return l.Lock(leader) })
		locktest.Sleep(time.Millisecond)
		second := locktest.StartLock(func() (context.Context, error) { return l.Lock(t.Context()) })
		locktest.Sleep(300 * time.Millisecond) // the subscription is there

		spy.Wrap(func(ops []string, next func() error) error {
			err := next()
			if slices.Contains(ops, "unlock") { // done, and its reply takes 20 ms
				time.Sleep(20 * time.Millisecond)
			}
			return err
		})
		go func() {
			time.Sleep(10 * time.Millisecond)
			giveUp()
		}()
		locktest.NoError(t, l.Unlock(held))
		freed := time.Now()
		locktest.IsError(t, (<-first).Err, context.Canceled)
		got := <-second
		locktest.NoError(t, got.Err)
		if late := got.At.Sub(freed); late > 100*time.Millisecond {
			t.Errorf("the next waiter slept %v on a free lock", late)
		}
		spy.Wrap(nil)
		locktest.NoError(t, l.Unlock(got.Ctx))
		locktest.Sleep(time.Second) // for what was sent behind
	})
}

// Close: waiters get ErrClosed, at once, also the leader whose attempt hangs.
func TestCloseWhileTheLeaderAsks(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		spy := locktest.SpyOn(rdb)
		c := newClient(t, rdb)
		l := rlock.NewLock(c, "l")
		thaw := make(chan struct{})
		spy.Wrap(func(ops []string, next func() error) error {
			if slices.Contains(ops, "acquire") {
				<-thaw
			}
			return next()
		})
		defer close(thaw)
		call := locktest.StartLock(func() (context.Context, error) { return l.Lock(t.Context()) })
		locktest.Sleep(time.Second)
		began := time.Now()
		locktest.NoError(t, c.Close())
		got := <-call
		locktest.IsError(t, got.Err, rlock.ErrClosed)
		if took := got.At.Sub(began); took > 100*time.Millisecond {
			t.Errorf("ErrClosed came %v after Close", took)
		}
	})
}

// P4: a holder has one hold of a lock. Here a second call of the same holder, through another context, waits, and the
// key goes (DEL by hand, eviction) before the client knows. Whatever the waiting call returns must be usable: ErrLost, or
// a hold that nested calls re-enter and HoldCount counts.
func TestSecondHoldOfOneHolder(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		l := rlock.NewLock(newClient(t, rdb), "l")
		shared := rlock.NewHolder(t.Context())
		first := take(t, l, shared)
		second := locktest.StartLock(func() (context.Context, error) { return l.Lock(shared) })
		locktest.Sleep(100 * time.Millisecond)
		m.Del("l")
		got := <-second // at its poll it looks
		locktest.IsError(t, l.Check(first), rlock.ErrLost)
		if got.Err != nil {
			locktest.IsError(t, got.Err, rlock.ErrLost)
			return
		}
		locktest.NoError(t, l.Check(got.Ctx))
		wantHolds(t, l, got.Ctx, 1)
		nested, err := l.TryLock(got.Ctx, 0, 0)
		locktest.NoError(t, err)
		locktest.NoError(t, l.Unlock(nested))
		locktest.NoError(t, l.Unlock(got.Ctx))
	})
}

// A Close ends a Shutdown that waits: the client is closed, its watchdog has stopped, and nothing tells any more that a
// hold which is never unlocked is over. Shutdown says so.
func TestCloseEndsShutdown(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		c := newClient(t, rdb)
		l := rlock.NewLock(c, "l")
		held := take(t, l, t.Context())
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		began := time.Now()
		down := locktest.Start(func() error { return c.Shutdown(ctx) })
		locktest.Sleep(time.Second)
		locktest.NoError(t, c.Close())
		err := <-down
		if took := time.Since(began); took > time.Minute {
			t.Errorf("Shutdown waited for %v, after Close and long after the lease", took)
		}
		locktest.IsError(t, err, rlock.ErrClosed)
		locktest.ErrorSays(t, err, "closed with 1 locks held")
		_ = l.Unlock(held)
	})
}

// A Close ends also the wait of a holder that Shutdown has left to go on, whose context does not end with its hold.
func TestCloseEndsAWaitThatShutdownSpared(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		c := newClient(t, rdb)
		other := rlock.NewLock(newClient(t, redistest.PipeClient(t, m)), "l")
		theirs := take(t, other, t.Context())
		outer := rlock.NewLock(c, "outer")
		held := take(t, outer, t.Context())
		down := locktest.Start(func() error { return c.Shutdown(t.Context()) })
		synctest.Wait()
		call := locktest.StartLock(func() (context.Context, error) { return rlock.NewLock(c, "l").Lock(context.WithoutCancel(held)) })
		locktest.NothingComes(t, call, 5*time.Second, "a holder that waits during Shutdown")
		began := time.Now()
		locktest.NoError(t, c.Close())
		got := redistest.Await(t, time.Minute, call, "the wait ends")
		locktest.IsError(t, got.Err, rlock.ErrClosed)
		if late := got.At.Sub(began); late > 100*time.Millisecond {
			t.Errorf("ErrClosed came %v after Close", late)
		}
		locktest.NoError(t, outer.Unlock(held))
		<-down
		locktest.NoError(t, other.Unlock(theirs))
	})
}
