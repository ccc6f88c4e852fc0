package rlock_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/realtime"
	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/fencelock/fencelock/rlock"
)

// handoffSite is a site with a client behind its proxy, whose lock "a" one call holds and others wait for.
type handoffSite struct {
	*site
	c       *rlock.Client
	lock    *fenced.Lock
	held    context.Context
	waiters []handoffWaiter
}

type handoffWaiter struct {
	got    <-chan locktest.Result
	cancel context.CancelFunc
}

const (
	unlockBound = 900 * time.Millisecond // the bound of Unlock in these tests: a transfer is given a third of it
	waitBound   = 10 * time.Second
	copyBound   = 10 * time.Second // for how long a copy of a command may be executed still (P8): then a lease begins in which it is released (P3)
)

func newHandoffSite(t *testing.T, opts ...rlock.Option) *handoffSite {
	t.Helper()
	realtime.Test(t, "an Unlock of 900 ms, and leases of a few seconds")
	s := &handoffSite{site: newSite(t)}
	locktest.NoError(t, s.direct.ScriptLoad(t.Context(), locktest.ScriptText("transfer")).Err())
	// Nothing but the bounds of the library ends a wait for Redis here.
	rdb := redistest.Client(t, s.proxy.Addr(), func(o *redis.Options) { o.ReadTimeout = 2 * time.Second })
	s.c = newClient(t, rdb, append([]rlock.Option{rlock.WithUnlockTimeout(unlockBound)}, opts...)...)
	s.lock = fenced.NewLock(s.c, "a")
	var err error
	s.held, _, err = s.lock.LockAndGetToken(t.Context())
	locktest.NoError(t, err)
	return s
}

// stand puts waiters into the queue until there are so many.
func (s *handoffSite) stand(t *testing.T, n int) {
	t.Helper()
	for len(s.waiters) < n {
		ctx, cancel := context.WithCancel(t.Context())
		t.Cleanup(cancel)
		s.waiters = append(s.waiters, handoffWaiter{
			locktest.StartFenced(func() (context.Context, int64, error) { return s.lock.TryLockAndGetToken(ctx, waitBound, 0) }), cancel,
		})
		redistest.Eventually(t, bound, func() bool {
			in, idle := s.c.InQueue("a")
			return in == len(s.waiters) && idle
		}, "the waiters are in the queue")
	}
}

// pass unlocks while so many are in the queue, again and again until the transfer by which the first of them is to have the
// lock is met by the fault: there is none, 20 ms after the client took the lock. It returns
// what becomes of that Unlock.
func (s *handoffSite) pass(t *testing.T, n int, met func() bool) (unlocked <-chan error, began time.Time) {
	t.Helper()
	for range 200 {
		s.stand(t, n)
		began = time.Now()
		done := make(chan struct{})
		result, held := make(chan error, 1), s.held
		go func() {
			defer close(done)
			result <- s.lock.Unlock(held)
		}()
		for !met() {
			select {
			case <-done:
			case <-time.After(time.Millisecond):
				continue
			}
			break
		}
		if met() {
			return result, began
		}
		locktest.IsNotError(t, <-result, rlock.ErrLost, rlock.ErrNotHeld) // on a busy machine a release may be confirmed late
		got := redistest.Await(t, bound, s.waiters[0].got, "the waiter gets the lock")
		locktest.NoError(t, got.Err)
		s.held, s.waiters = got.Ctx, s.waiters[1:]
	}
	t.Fatal("no handoff within 20 ms in 200 tries")
	panic("not reached")
}

// unlockIsBack requires that the Unlock that began then returns, and that its release was confirmed in its bound. A machine that
// was late for a part of that may confirm it later.
func unlockIsBack(t *testing.T, unlocked <-chan error, began time.Time) {
	t.Helper()
	err := redistest.Await(t, bound, unlocked, "Unlock is back")
	if late := redistest.Late(began); err != nil && late > unlockBound/4 {
		t.Logf("the machine was late for %v: %v", late, err)
		return
	}
	locktest.NoError(t, err)
}

func hasFired(f *redistest.Fault) func() bool {
	return func() bool {
		select {
		case <-f.Fired():
			return true
		default:
			return false
		}
	}
}

// empty requires that the lock is free in Redis and nothing is on the client's books (Inv9, P3).
func (s *handoffSite) empty(t *testing.T, within time.Duration) {
	t.Helper()
	redistest.Eventually(t, within, func() bool { return s.count("a") == "" && s.c.Books() == "" },
		"the lock is free and the books are empty: %v, %q", s.hash("a"), s.c.Books())
}

// next requires that another client gets the lock, with a token above this one.
func (s *handoffSite) next(t *testing.T, above int64) {
	t.Helper()
	other := fenced.NewLock(s.other(), "a")
	held, token, err := other.TryLockAndGetToken(t.Context(), bound, 0)
	locktest.NoError(t, err)
	if token <= above {
		t.Errorf("Inv2: another client has token %d after %d", token, above)
	}
	locktest.NoError(t, other.Unlock(held))
}

// P15, P12, Inv6, Inv8, Inv1: whatever becomes of a transfer, Unlock is back within its bound, the waiter has the lock
// within that and a round trip more, nothing is counted twice, and nothing is left. A short lease ends the list of what
// got no answer soon.
func TestHandoffFault(t *testing.T) {
	for _, test := range []struct {
		name    string
		do      redistest.Action
		release bool // after all is done
		unlock  time.Duration
		waiter  time.Duration
	}{
		{"executed, the connection cut", redistest.SwallowReply, false, 0, 100 * time.Millisecond},
		{"executed, silence", redistest.SwallowReplySilently, false, unlockBound, unlockBound},
		{"executed, answered late", redistest.HoldReply, true, unlockBound, unlockBound},
		{"not executed, the connection cut", redistest.HoldCut, true, 0, 100 * time.Millisecond},
		{"delayed until after the fallback", redistest.Hold, true, unlockBound, unlockBound},
		{"duplicated", redistest.Duplicate, true, 0, 0},
		{"refused: OOM", redistest.Refuse("OOM command not allowed when used memory > 'maxmemory'."), false, 0, 0},
		{"refused: READONLY", redistest.Refuse("READONLY You can't write against a read only replica."), false, 0, 0},
		{"refused: LOADING", redistest.Refuse("LOADING Redis is loading the dataset in memory"), false, 0, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			const lease = 3 * time.Second
			s := newHandoffSite(t, rlock.WithLease(lease))
			f := s.on("transfer", test.do)
			unlocked, began := s.pass(t, 1, hasFired(f))
			got := redistest.Await(t, waitBound+time.Second, s.waiters[0].got, "the waiter is back")
			locktest.NoError(t, got.Err)
			if s.held.Err() == nil {
				t.Error("Inv1: the former holder's context is alive")
			}
			counter, err := s.direct.Get(t.Context(), "redisson_lock_token:{a}").Int64()
			locktest.NoError(t, err)
			locktest.Equal(t, "token", got.Token, counter)
			within(t, began, test.waiter, "the wait")
			unlockIsBack(t, unlocked, began)
			within(t, began, test.unlock, "Unlock")
			if test.release {
				f.Release()
				redistest.Await(t, bound, f.Done(), "the delayed one is through")
			}
			s.wantCount("a", "1")
			locktest.NoError(t, s.lock.Check(got.Ctx))
			if n, err := s.lock.HoldCount(got.Ctx); n != 1 || err != nil {
				t.Errorf("hold count %d, %v", n, err)
			}
			locktest.NoError(t, s.lock.Unlock(got.Ctx))
			s.wantCount("a", "")
			s.next(t, got.Token)
			s.empty(t, copyBound+2*lease)
		})
	}
}

// P3, Inv6: the waiter gives up while the transfer is on its way, which arrives before or after that: it is back at
// once, Unlock too, and what it left is released. Whoever waits next is not kept by it.
func TestHandoffToAWaiterThatGivesUp(t *testing.T) {
	for _, do := range []struct {
		name string
		do   redistest.Action
	}{
		{"executed, not answered yet", redistest.HoldReply},
		{"not executed yet", redistest.Hold},
		{"the connection cut", redistest.HoldCut},
		{"executed, silence", redistest.SwallowReplySilently},
	} {
		for _, late := range []bool{false, true} {
			t.Run(fmt.Sprint(do.name, " late ", late), func(t *testing.T) {
				const lease = 3 * time.Second
				s := newHandoffSite(t, rlock.WithLease(lease))
				f := s.on("transfer", do.do)
				unlocked, began := s.pass(t, 2, hasFired(f))
				s.waiters[0].cancel()
				got := redistest.Await(t, waitBound, s.waiters[0].got, "the waiter is back")
				if got.Err == nil {
					locktest.NoError(t, s.lock.Unlock(got.Ctx)) // it was faster
				} else {
					locktest.IsError(t, got.Err, context.Canceled)
				}
				within(t, began, 0, "the end of the wait")
				if late {
					unlockIsBack(t, unlocked, began)
				}
				f.Release()
				if !late {
					unlockIsBack(t, unlocked, began)
				}
				within(t, began, unlockBound, "Unlock")
				next := redistest.Await(t, waitBound+time.Second, s.waiters[1].got, "the second waiter is back")
				locktest.NoError(t, next.Err)
				// A transfer that arrives when Unlock is back may just have missed a release: the next one comes a third of the lease later.
				within(t, began, unlockBound+lease/3+200*time.Millisecond, "the second wait")
				locktest.NoError(t, s.lock.Check(next.Ctx))
				locktest.NoError(t, s.lock.Unlock(next.Ctx))
				s.next(t, next.Token)
				s.empty(t, copyBound+2*lease)
			})
		}
	}
}

// P12, Inv6, P3: a server that stands still: Unlock and the waiter are back within their bounds; when it goes on again
// nothing of it stays.
func TestHandoffOnAFrozenServer(t *testing.T) {
	s := newHandoffSite(t, rlock.WithLease(3*time.Second))
	f := s.on("transfer", redistest.HoldReply)
	go func() { // when the transfer comes it stands still
		<-f.Fired()
		s.proxy.Freeze()
		f.Release()
	}()
	unlocked, began := s.pass(t, 1, hasFired(f))
	if err := redistest.Await(t, bound, unlocked, "Unlock is back"); err == nil {
		t.Error("Unlock of a frozen server says nil")
	}
	within(t, began, unlockBound, "Unlock")
	got := redistest.Await(t, waitBound+time.Second, s.waiters[0].got, "the waiter is back")
	if got.Err == nil {
		t.Fatal("a lock from a frozen server")
	}
	within(t, began, waitBound, "the wait")
	s.proxy.Thaw()
	s.empty(t, copyBound+12*time.Second)
	s.next(t, 2)
}

// P2, P12: the lock was forced open before its transfer: the one who unlocks hears of the loss, the waiter gets the lock
// otherwise, at once or when the stranger who has it is done.
func TestHandoffOfALockThatWasLost(t *testing.T) {
	for _, stranger := range []bool{false, true} {
		t.Run(fmt.Sprint("stranger ", stranger), func(t *testing.T) {
			const lease = 3 * time.Second
			s := newHandoffSite(t, rlock.WithLease(lease), rlock.WithUnlockTimeout(bound)) // the transfer is held until f.Release
			other := fenced.NewLock(s.other(), "a")
			f := s.on("transfer", redistest.Hold)
			unlocked, _ := s.pass(t, 1, hasFired(f))
			locktest.NoError(t, s.direct.Del(t.Context(), "a").Err())
			var theirs context.Context
			if stranger {
				var err error
				theirs, _, err = other.LockAndGetToken(t.Context())
				locktest.NoError(t, err)
			}
			token, err := s.direct.Get(t.Context(), "redisson_lock_token:{a}").Int64()
			locktest.NoError(t, err)
			f.Release()
			locktest.IsError(t, redistest.Await(t, bound, unlocked, "Unlock is back"), rlock.ErrLost)
			if stranger {
				locktest.NothingComes(t, s.waiters[0].got, 100*time.Millisecond, "the waiter is back although a stranger has the lock")
				locktest.NoError(t, other.Check(theirs))
				locktest.NoError(t, other.Unlock(theirs))
			}
			began := time.Now()
			got := redistest.Await(t, waitBound+time.Second, s.waiters[0].got, "the waiter is back")
			locktest.NoError(t, got.Err)
			within(t, began, 0, "the wait")
			locktest.Equal(t, "token", got.Token, token+1)
			locktest.NoError(t, s.lock.Unlock(got.Ctx))
			s.empty(t, copyBound+2*lease)
		})
	}
}

// Shutdown while a transfer is on its way waits for the hold that it makes.
func TestHandoffDuringShutdown(t *testing.T) {
	s := newHandoffSite(t, rlock.WithUnlockTimeout(10*time.Second))
	f := s.on("transfer", redistest.HoldReply)
	unlocked, _ := s.pass(t, 1, hasFired(f))
	down := locktest.Start(func() error { return s.c.Shutdown(t.Context()) })
	locktest.NothingComes(t, down, 50*time.Millisecond, "Shutdown is done although a transfer is on its way")
	f.Release()
	locktest.NoError(t, redistest.Await(t, bound, unlocked, "Unlock is back"))
	got := redistest.Await(t, bound, s.waiters[0].got, "the waiter is back")
	if got.Err != nil {
		locktest.IsError(t, got.Err, rlock.ErrClosed)
	} else {
		locktest.NothingComes(t, down, 50*time.Millisecond, "Shutdown is done although a lock is held")
		locktest.NoError(t, s.lock.Check(got.Ctx))
		locktest.NoError(t, s.lock.Unlock(got.Ctx))
	}
	locktest.NoError(t, redistest.Await(t, bound, down, "Shutdown is done"))
	s.empty(t, time.Second)
}

// P3: the same, and the waiter gives up before the transfer arrives: Shutdown does not leave a lock that nobody has.
func TestHandoffDuringShutdownToAWaiterThatGivesUp(t *testing.T) {
	for _, do := range []struct {
		name string
		do   redistest.Action
	}{{"executed", redistest.HoldReply}, {"not executed yet", redistest.Hold}} {
		t.Run(do.name, func(t *testing.T) {
			s := newHandoffSite(t, rlock.WithUnlockTimeout(10*time.Second))
			f := s.on("transfer", do.do)
			unlocked, _ := s.pass(t, 1, hasFired(f))
			down := locktest.Start(func() error { return s.c.Shutdown(t.Context()) })
			redistest.Eventually(t, bound, func() bool {
				_, err := rlock.NewLock(s.c, "a").TryLock(t.Context(), 0, 0) // it is held: nothing is taken
				return errors.Is(err, rlock.ErrClosed)
			}, "Shutdown has begun")
			s.waiters[0].cancel()
			got := redistest.Await(t, bound, s.waiters[0].got, "the waiter is back")
			if got.Err == nil {
				t.Fatal("the transfer was not on its way")
			}
			time.Sleep(20 * time.Millisecond) // the first release behind it finds nothing
			f.Release()
			locktest.NoError(t, redistest.Await(t, bound, unlocked, "Unlock is back"))
			locktest.NoError(t, redistest.Await(t, bound, down, "Shutdown is done"))
			s.empty(t, time.Second) // the lease is 30 s
		})
	}
}

// Close while a transfer is on its way: the waiter gets ErrClosed, Unlock still works; what stays in Redis for the rest of
// its lease is logged (P3).
func TestHandoffDuringClose(t *testing.T) {
	log := new(locktest.Log)
	s := newHandoffSite(t, rlock.WithLease(2*time.Second), rlock.WithLogger(log.Logger()))
	f := s.on("transfer", redistest.HoldReply)
	unlocked, _ := s.pass(t, 1, hasFired(f))
	locktest.NoError(t, s.c.Close())
	got := redistest.Await(t, bound, s.waiters[0].got, "the waiter is back")
	locktest.IsError(t, got.Err, rlock.ErrClosed)
	f.Release()
	if err := redistest.Await(t, bound, unlocked, "Unlock is back"); err != nil && !errors.Is(err, rlock.ErrClosed) {
		t.Errorf("Unlock: %v", err)
	}
	if s.count("a") != "" {
		if len(log.With("closed before a release was confirmed")) == 0 {
			t.Error("P3: what stays is not logged")
		}
	}
	s.empty(t, 3*time.Second)
}
