package rlock_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/redistest"
	"github.com/fencelock/fencelock/rlock"
)

// DESIGN 6: the waiters of one client get the lock in the order of their arrival.
func TestVirtualFIFO(t *testing.T) {
	bhVirtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		bhInOrder(t, rlock.NewLock(bhClient(t, rdb), "l"), 100)
	})
}

// bhInOrder lines up waiters behind a hold, releases it, and requires that each gets the lock in its turn.
func bhInOrder(t *testing.T, l *rlock.Lock, n int) {
	t.Helper()
	held := bhLock(t, l, t.Context())
	turns := bhLineUp(t, l, n)
	began := time.Now()
	bhOK(t, l.Unlock(held))
	for i := range n {
		if got := <-turns; got != i {
			t.Fatalf("waiter %d came in place of %d", got, i)
		}
	}
	if took := time.Since(began); took > time.Duration(n)*time.Millisecond+10*time.Millisecond {
		t.Errorf("the handoffs took %v", took)
	}
	bhAsleep(10 * time.Millisecond)
	bhLocked(t, l, false)
}

// bhLineUp starts waiters one after the other; each says its number when it has the lock, keeps it for a millisecond and
// releases it.
func bhLineUp(t *testing.T, l *rlock.Lock, n int) <-chan int {
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
		synctest.Wait() // it stands in line
	}
	return turns
}

// DESIGN 6: ten thousand waiters have one subscription, only the leader asks Redis, and they get the lock in order. For
// the sake of time only the first two thousand do; the others give up at once. Nothing is left of them (Inv9).
func TestVirtualManyWaiters(t *testing.T) {
	bhVirtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		const n, turn = 10_000, 2_000
		ctx, giveUp := context.WithCancel(t.Context())
		defer giveUp()
		spy := bhSpyOn(rdb)
		l := rlock.NewLock(bhClient(t, rdb), "l")
		other := rlock.NewLock(bhClient(t, redistest.PipeClient(t, m)), "l")
		held := bhLock(t, other, t.Context())
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
		bhAsleep(30 * time.Second) // until the poll has backed off
		before := spy.count("acquire")
		bhAsleep(10 * time.Minute)
		if asked := spy.count("acquire") - before; asked > 61 {
			t.Errorf("%d acquires in ten idle minutes", asked)
		}
		bhEqual(t, "subscriptions", m.PubSubNumSub(bhChannel)[bhChannel], 2) // of the waiters' client, and of the holder's
		bhOK(t, other.Unlock(held))
		for i := range turn {
			if got := <-turns; got != i {
				t.Fatalf("waiter %d came in place of %d", got, i)
			}
		}
		bhAsleep(5 * time.Second)
		bhEqual(t, "turns after the last", len(turns), 0)
		bhEqual(t, "subscriptions left", len(m.PubSubChannels("*")), 0)
		bhEqual(t, "keys left", len(m.Keys()), 0)
	})
}

// DESIGN 6: a leader that gives up hands the lead on; one in the middle that gives up is not missed.
func TestVirtualWaitersGiveUp(t *testing.T) {
	bhVirtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		l := rlock.NewLock(bhClient(t, rdb), "l")
		other := rlock.NewLock(bhClient(t, redistest.PipeClient(t, m)), "l")
		held := bhLock(t, other, t.Context())
		var calls []<-chan bhGot
		var cancels []context.CancelFunc
		for range 6 {
			ctx, cancel := context.WithCancel(t.Context())
			calls = append(calls, bhGo(func() (context.Context, error) { return l.Lock(ctx) }))
			cancels = append(cancels, cancel)
			synctest.Wait()
		}
		bhAsleep(time.Minute)
		for _, i := range []int{3, 0, 1, 5} { // the middle, the leader, the next leader, the last
			cancels[i]()
			bhIs(t, (<-calls[i]).err, context.Canceled)
		}
		bhAsleep(time.Second)
		freed := time.Now()
		bhOK(t, other.Unlock(held))
		for _, i := range []int{2, 4} {
			got := <-calls[i]
			bhOK(t, got.err)
			bhEqual(t, "late", time.Since(freed), 0)
			bhOK(t, l.Unlock(got.ctx))
		}
		for _, cancel := range cancels {
			cancel()
		}
	})
}

// Inv8: the leader gives up in the very moment in which the lock becomes free: the next one gets it at once.
func TestVirtualLeaderGivesUpAtTheRelease(t *testing.T) {
	bhVirtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		l := rlock.NewLock(bhClient(t, rdb), "l")
		for i := range 200 {
			held := bhLock(t, l, t.Context())
			ctx, giveUp := context.WithCancel(t.Context())
			first := bhGo(func() (context.Context, error) { return l.Lock(ctx) })
			synctest.Wait()
			second := bhGo(func() (context.Context, error) { return l.Lock(t.Context()) })
			bhAsleep(10 * time.Millisecond)
			freed := time.Now()
			unlocked := make(chan error, 1)
			if i%2 == 0 {
				go giveUp()
				unlocked <- l.Unlock(held)
			} else {
				go func() { unlocked <- l.Unlock(held) }()
				giveUp()
			}
			if got := <-first; got.err == nil {
				_ = l.Unlock(got.ctx)
			}
			bhOK(t, <-unlocked)
			got := <-second
			bhOK(t, got.err)
			if late := got.at.Sub(freed); late > 110*time.Millisecond { // the release behind the first may take its turn
				t.Errorf("the next waiter slept %v on a free lock", late)
			}
			bhOK(t, l.Unlock(got.ctx))
			giveUp()
		}
	})
}

// Inv6, Inv12: a wait that is over says ErrNotAcquired exactly then, in first place and behind others.
func TestVirtualWaitEnds(t *testing.T) {
	bhVirtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		l := rlock.NewLock(bhClient(t, rdb), "l")
		other := rlock.NewLock(bhClient(t, redistest.PipeClient(t, m)), "l")
		for _, holder := range []*rlock.Lock{l, other} {
			held := bhLock(t, holder, t.Context())
			began := time.Now()
			waits := []time.Duration{3 * time.Second, time.Second, 1500 * time.Millisecond, time.Millisecond, time.Minute}
			var calls []<-chan bhGot
			for _, wait := range waits {
				calls = append(calls, bhGo(func() (context.Context, error) { return l.TryLock(t.Context(), wait, 0) }))
				synctest.Wait()
			}
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			bounded := bhGo(func() (context.Context, error) { return l.TryLock(ctx, time.Minute, 0) })
			for i, wait := range waits {
				got := <-calls[i]
				bhIs(t, got.err, rlock.ErrNotAcquired)
				bhIsNot(t, got.err, context.DeadlineExceeded)
				bhEqual(t, "waited", got.at.Sub(began), wait)
			}
			got := <-bounded
			bhIs(t, got.err, context.DeadlineExceeded)
			bhIsNot(t, got.err, rlock.ErrNotAcquired)
			bhEqual(t, "waited", got.at.Sub(began), 2*time.Second)
			cancel()
			bhOK(t, holder.Unlock(held))
		}
	})
}

// A context that ends with a cause of its own while it waits behind others.
func TestVirtualCauseOfAWait(t *testing.T) {
	bhVirtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		l := rlock.NewLock(bhClient(t, rdb), "l")
		held := bhLock(t, l, t.Context())
		why := errors.New("the user's reason")
		ctx, cancel := context.WithTimeoutCause(t.Context(), 2*time.Second, why)
		defer cancel()
		_, err := l.Lock(ctx)
		bhIs(t, err, why, context.DeadlineExceeded)
		bhOK(t, l.Unlock(held))
	})
}

// Inv8, P10: a plain DEL sends no message: the poll finds it, within ten intervals while the subscription works.
func TestVirtualPlainDel(t *testing.T) {
	bhVirtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		l := rlock.NewLock(bhClient(t, rdb), "l")
		bhJavaHolds(t, rdb, time.Hour)
		call := bhGo(func() (context.Context, error) { return l.Lock(t.Context()) })
		bhAsleep(5 * time.Minute)
		m.Del("l")
		began := time.Now()
		got := <-call
		bhOK(t, got.err)
		if took := got.at.Sub(began); took > 10*time.Second {
			t.Errorf("the DEL was found after %v", took)
		}
		bhOK(t, l.Unlock(got.ctx))
	})
}

// P7: a key without an expiry is waited for, by polling every interval.
func TestVirtualKeyWithoutExpiry(t *testing.T) {
	bhVirtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		l := rlock.NewLock(bhClient(t, rdb), "l")
		bhJavaHolds(t, rdb, 0)
		_, err := l.TryLock(t.Context(), 0, 0)
		bhIs(t, err, rlock.ErrNotAcquired)
		call := bhGo(func() (context.Context, error) { return l.Lock(t.Context()) })
		bhAsleep(5 * time.Minute)
		bhEqual(t, "field", bhField(t, rdb), bhJava)
		bhEqual(t, "TTL", m.TTL("l"), 0)
		m.Del("l")
		began := time.Now()
		got := <-call
		bhOK(t, got.err)
		if took := got.at.Sub(began); took > time.Second {
			t.Errorf("the DEL was found after %v", took)
		}
		bhOK(t, l.Unlock(got.ctx))
	})
}

// Inv8: the holder's TTL wakes the waiter to the millisecond, its release at once.
func TestVirtualRedisson(t *testing.T) {
	bhVirtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		l := rlock.NewLock(bhClient(t, rdb), "l")
		bhJavaHolds(t, rdb, 25*time.Second)
		began := time.Now()
		held := bhLock(t, l, t.Context())
		if took := time.Since(began); took < 25*time.Second || took > 25*time.Second+2*time.Millisecond {
			t.Errorf("a lease of 25 s was waited for for %v", took)
		}
		bhOK(t, l.Unlock(held))

		bhJavaHolds(t, rdb, time.Hour)
		call := bhGo(func() (context.Context, error) { return l.Lock(t.Context()) })
		bhAsleep(time.Minute)
		m.Del("l")
		rdb.Publish(t.Context(), bhChannel, "0")
		freed := time.Now()
		got := <-call
		bhOK(t, got.err)
		bhEqual(t, "woken after", got.at.Sub(freed), 0)
		bhOK(t, l.Unlock(got.ctx))
	})
}

// Inv8: a hold of this client that is lost frees its waiters when the lease in Redis is over, and no later.
func TestVirtualWaiterBehindALostHold(t *testing.T) {
	bhVirtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		l := rlock.NewLock(bhClient(t, rdb), "l")
		began := time.Now()
		held, err := l.LockLease(t.Context(), 10*time.Second)
		bhOK(t, err)
		call := bhGo(func() (context.Context, error) { return l.Lock(t.Context()) })
		got := <-call
		bhOK(t, got.err)
		bhIs(t, held.Err(), rlock.ErrLost)
		if took := got.at.Sub(began); took < 10*time.Second || took > 10*time.Second+2*time.Millisecond {
			t.Errorf("a lease of 10 s was waited for for %v", took)
		}
		bhIs(t, l.Unlock(held), rlock.ErrLost)
		bhOK(t, got.ctx.Err())
		bhCount(t, l, got.ctx, 1)
		bhOK(t, l.Unlock(got.ctx))
	})
}

// DESIGN 3: a call of the same holder from elsewhere waits, and says so once, after the poll interval.
func TestVirtualSameHolderElsewhere(t *testing.T) {
	const line = "held by this holder through another context; a nested call needs the ctx that Lock returned"
	bhVirtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		var log bhLog
		l := rlock.NewLock(bhClient(t, rdb, log.option()), "l")
		ctx := rlock.NewHolder(t.Context())
		bhLock(t, l, ctx)
		_, err := l.TryLock(ctx, 0, 0)
		bhIs(t, err, rlock.ErrNotAcquired)
		calls := []<-chan bhGot{
			bhGo(func() (context.Context, error) { return l.Lock(ctx) }),
			bhGo(func() (context.Context, error) { return l.Lock(ctx) }),
		}
		bhAsleep(999 * time.Millisecond)
		bhEqual(t, "log lines before the poll interval", log.count(line), 0)
		bhAsleep(2 * time.Millisecond)
		bhEqual(t, "log lines after it", log.count(line), 1)
		bhAsleep(10 * time.Minute)
		bhEqual(t, "log lines later", log.count(line), 1)
		bhOK(t, l.Check(ctx)) // renewed meanwhile
		for range calls {
			bhOK(t, l.Unlock(ctx))
			bhAsleep(time.Second)
		}
		bhOK(t, (<-calls[0]).err)
		bhOK(t, (<-calls[1]).err)
		bhOK(t, l.Unlock(ctx))
		bhIs(t, l.Unlock(ctx), rlock.ErrNotHeld)
	})
}

// DESIGN 3: a call that waits with the context of an outer level re-enters when the inner level, of a sibling, is
// unlocked; no message tells it to.
func TestVirtualSiblingReenters(t *testing.T) {
	bhVirtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		l := rlock.NewLock(bhClient(t, rdb), "l")
		outer := bhLock(t, l, t.Context())
		for range 50 {
			sibling := bhLock(t, l, outer)
			_, err := l.TryLock(outer, 0, 0)
			bhIs(t, err, rlock.ErrNotAcquired)
			call := bhGo(func() (context.Context, error) { return l.Lock(outer) })
			bhAsleep(100 * time.Millisecond)
			freed := time.Now()
			bhOK(t, l.Unlock(sibling))
			got := <-call
			bhOK(t, got.err)
			bhEqual(t, "woken after", got.at.Sub(freed), 0)
			bhCount(t, l, got.ctx, 2)
			bhOK(t, l.Unlock(got.ctx))
		}
		bhOK(t, l.Unlock(outer))
	})
}

// A wait with the context of a hold of another lock ends with that hold's loss.
func TestVirtualWaitEndsWithTheOuterHold(t *testing.T) {
	bhVirtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		c := bhClient(t, rdb)
		a, b := rlock.NewLock(c, "a"), rlock.NewLock(c, "b")
		stranger := bhLock(t, b, t.Context())
		inA, err := a.LockLease(t.Context(), 5*time.Second)
		bhOK(t, err)
		began := time.Now()
		got, err := b.Lock(inA)
		bhIs(t, err, rlock.ErrLost, context.Canceled)
		bhEqual(t, "context", got, inA)
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("it waited for %v", took)
		}
		bhOK(t, b.Unlock(stranger))
		bhIs(t, a.Unlock(inA), rlock.ErrLost)
	})
}

// P15: TryLock with wait 0 does not ask Redis what the client knows, and asks when its knowledge is older than a second.
func TestVirtualTryLockAsksNobody(t *testing.T) {
	bhVirtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		spy := bhSpyOn(rdb)
		l := rlock.NewLock(bhClient(t, rdb), "l")
		held := bhLock(t, l, t.Context())
		before := spy.count("acquire")
		for range 10 {
			_, err := l.TryLock(t.Context(), 0, 0)
			bhIs(t, err, rlock.ErrNotAcquired)
		}
		bhEqual(t, "acquires", spy.count("acquire"), before)
		m.Del("l")
		bhAsleep(1001 * time.Millisecond)
		next, err := l.TryLock(t.Context(), 0, 0)
		bhOK(t, err)
		bhIs(t, held.Err(), rlock.ErrLost)
		bhOK(t, l.Unlock(next))
	})
}

// Inv8: no waiter sleeps on a free lock. The message of a release arrives before the reply to it; the leader that takes
// the message gives up; the next in line becomes the leader while the client still believes in its own hold. When the
// reply comes, the new leader must look.
func TestVirtualNextLeaderSleepsOnAFreeLock(t *testing.T) {
	bhVirtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		spy := bhSpyOn(rdb)
		l := rlock.NewLock(bhClient(t, rdb), "l")
		bhOK(t, l.Unlock(bhLock(t, l, t.Context()))) // the server has the scripts
		held := bhLock(t, l, t.Context())
		leader, giveUp := context.WithCancel(t.Context())
		first := bhGo(func() (context.Context, error) { return l.Lock(leader) })
		bhAsleep(time.Millisecond)
		second := bhGo(func() (context.Context, error) { return l.Lock(t.Context()) })
		bhAsleep(300 * time.Millisecond) // the subscription is there

		spy.wrap(func(ctx context.Context, script string, next func() error) error {
			switch script {
			case "unlock": // done, and its reply takes 20 ms
				err := next()
				time.Sleep(20 * time.Millisecond)
				return err
			}
			return next()
		})
		go func() {
			time.Sleep(10 * time.Millisecond)
			giveUp()
		}()
		bhOK(t, l.Unlock(held))
		freed := time.Now()
		bhIs(t, (<-first).err, context.Canceled)
		got := <-second
		bhOK(t, got.err)
		if late := got.at.Sub(freed); late > 100*time.Millisecond {
			t.Errorf("the next waiter slept %v on a free lock", late)
		}
		spy.wrap(nil)
		bhOK(t, l.Unlock(got.ctx))
		bhAsleep(time.Second) // for what was sent behind
	})
}

// Close (DESIGN 3): waiters get ErrClosed, at once, also the leader whose attempt hangs.
func TestVirtualCloseWhileTheLeaderAsks(t *testing.T) {
	bhVirtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		spy := bhSpyOn(rdb)
		c := bhClient(t, rdb)
		l := rlock.NewLock(c, "l")
		thaw := make(chan struct{})
		spy.wrap(func(ctx context.Context, script string, next func() error) error {
			if script == "acquire" {
				<-thaw
			}
			return next()
		})
		defer close(thaw)
		call := bhGo(func() (context.Context, error) { return l.Lock(t.Context()) })
		bhAsleep(time.Second)
		began := time.Now()
		bhOK(t, c.Close())
		got := <-call
		bhIs(t, got.err, rlock.ErrClosed)
		if took := got.at.Sub(began); took > 100*time.Millisecond {
			t.Errorf("ErrClosed came %v after Close", took)
		}
	})
}

// P4: a holder has one hold of a lock. Here a second call of the same holder, through another context, waits, and the
// key goes (DEL by hand, eviction) before the client knows. Whatever the waiting call returns must be usable: ErrLost, or
// a hold that nested calls re-enter and HoldCount counts.
func TestVirtualSecondHoldOfOneHolder(t *testing.T) {
	bhVirtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		l := rlock.NewLock(bhClient(t, rdb), "l")
		shared := rlock.NewHolder(t.Context())
		first := bhLock(t, l, shared)
		second := bhGo(func() (context.Context, error) { return l.Lock(shared) })
		bhAsleep(100 * time.Millisecond)
		m.Del("l")
		got := <-second // at its poll it looks
		bhIs(t, l.Check(first), rlock.ErrLost)
		if got.err != nil {
			bhIs(t, got.err, rlock.ErrLost)
			return
		}
		bhOK(t, l.Check(got.ctx))
		bhCount(t, l, got.ctx, 1)
		nested, err := l.TryLock(got.ctx, 0, 0)
		bhOK(t, err)
		bhOK(t, l.Unlock(nested))
		bhOK(t, l.Unlock(got.ctx))
	})
}

// A Close ends a Shutdown that waits: the client is closed, its watchdog has stopped, and nothing tells any more that a
// hold which is never unlocked is over.
func TestVirtualCloseEndsShutdown(t *testing.T) {
	bhVirtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		c := bhClient(t, rdb)
		l := rlock.NewLock(c, "l")
		held := bhLock(t, l, t.Context())
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		began := time.Now()
		down := make(chan time.Duration, 1)
		go func() {
			_ = c.Shutdown(ctx)
			down <- time.Since(began)
		}()
		bhAsleep(time.Second)
		bhOK(t, c.Close())
		if took := <-down; took > time.Minute {
			t.Errorf("Shutdown waited for %v, after Close and long after the lease", took)
		}
		_ = l.Unlock(held)
	})
}
