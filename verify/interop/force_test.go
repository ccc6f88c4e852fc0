package interop

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/rlock"
)

// A hold of ours that Redisson forces open: its context ends with ErrLost, its Unlock says so and takes nothing from whoever
// has the lock by then, and that one's token is larger.
func TestRedissonForcesOurHoldOpen(t *testing.T) {
	for _, k := range kinds {
		t.Run(string(k), func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			ours, java := newLock(s.client(), k, "l"), s.java().lock("a", k, "l")
			held, token := take(t, ours, t.Context())
			inner, _ := take(t, ours, held)
			java.is("forceUnlock", true)
			java.is("isLocked", false)
			java.is("forceUnlock", false)
			next := java.lock()
			if k == fencedKind && next != token+2 {
				t.Errorf("Redisson's token is %d, ours were %d and %d", next, token, token+1)
			}
			await(t, inner.Done(), soon, "the hold's context ends")
			isError(t, context.Cause(inner), rlock.ErrLost)
			isError(t, ours.Check(held), rlock.ErrLost)
			_, err := ours.Lock(held)
			isError(t, err, rlock.ErrLost)
			isError(t, ours.Unlock(inner), rlock.ErrLost)
			isError(t, ours.Unlock(held), rlock.ErrLost)
			java.is("isHeldByCurrentThread", true)
			java.unlock()
			free(t, ours)
		})
	}
}

// A hold of Redisson's that we force open, re-entered: the waiters of both sides are woken, and its unlock says
// IllegalMonitorStateException.
func TestWeForceRedissonsHoldOpen(t *testing.T) {
	for _, k := range kinds {
		t.Run(string(k), func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			c, client := s.client(), s.java()
			forcer := s.client()
			for i := range 5 {
				name := fmt.Sprint("l", i)
				ours, java, other := newLock(c, k, name), client.lock("a", k, name), client.lock("b", k, name)
				java.lock()
				java.lock()
				waits := other.startLock()
				s.listened("redisson_lock__channel:{"+name+"}", 1)
				call := begin(func() (context.Context, error) { return ours.Lock(t.Context()) })
				s.asleep("redisson_lock__channel:{"+name+"}", 2)
				freed, err := newLock(forcer, k, name).ForceUnlock(t.Context())
				noError(t, err)
				equal(t, "freed", freed, true)
				select { // whichever side is first leaves it to the other one
				case a := <-waits:
					noError(t, a.err())
					other.unlock()
					got := await(t, call, soon, "our waiter")
					noError(t, got.err)
					noError(t, ours.Unlock(got.ctx))
				case got := <-call:
					noError(t, got.err)
					noError(t, ours.Unlock(got.ctx))
					noError(t, await(t, waits, soon, "Redisson's waiter").err())
					other.unlock()
				case <-time.After(soon):
					t.Fatal("nobody gets the lock")
				}
				java.is("isHeldByCurrentThread", false)
				if _, err := java.try("unlock"); err == nil || !strings.Contains(err.Error(), "IllegalMonitorStateException") {
					t.Errorf("unlock of a hold that was forced open: %v", err)
				}
				freed, err = ours.ForceUnlock(t.Context())
				noError(t, err)
				equal(t, "freed again", freed, false)
				free(t, ours)
			}
		})
	}
}

// A lease of ours that runs out lets Redisson's waiter in, which has slept for the TTL that it was told, and the other way
// round. The one who lost it hears of that.
func TestALeaseRunsOut(t *testing.T) {
	const lease = shortLease
	t.Run("ours", func(t *testing.T) {
		t.Parallel()
		s := newSite(t)
		ours, java := fenced.NewLock(s.client(), "l"), s.java().lock("a", fencedKind, "l")
		began := time.Now()
		held, token, err := ours.LockLeaseAndGetToken(t.Context(), lease)
		noError(t, err)
		equal(t, "Redisson's token", java.number("lockAndGetToken"), token+1)
		if took := time.Since(began); took < lease || took > lease+soon {
			t.Errorf("Redisson has the lock after %v", took)
		}
		isError(t, held.Err(), rlock.ErrLost)
		isError(t, ours.Unlock(held), rlock.ErrLost)
		java.unlock()
	})
	t.Run("Redisson's", func(t *testing.T) {
		t.Parallel()
		s := newSite(t)
		ours, java := fenced.NewLock(s.client(), "l"), s.java().lock("a", fencedKind, "l")
		began := time.Now()
		java.do("lock", "lease", ms(lease))
		held, _, err := ours.LockAndGetToken(t.Context())
		noError(t, err)
		if took := time.Since(began); took < lease || took > lease+soon {
			t.Errorf("we have the lock after %v", took)
		}
		if _, err := java.try("unlock"); err == nil || !strings.Contains(err.Error(), "IllegalMonitorStateException") {
			t.Errorf("unlock of a hold whose lease ran out: %v", err)
		}
		noError(t, ours.Unlock(held))
	})
}

// Each side's watchdog keeps the lock from the other side, and a client that is gone keeps it for its lease and no longer.
func TestWatchdogsAndClientsThatAreGone(t *testing.T) {
	const lease = shortLease
	t.Run("ours", func(t *testing.T) {
		t.Parallel()
		s := newSite(t)
		c := s.client(rlock.WithLease(lease))
		ours, java := rlock.NewLock(c, "l"), s.java().lock("a", plainKind, "l")
		held, _ := take(t, ours, t.Context())
		java.is("tryLock", false, "wait", ms(2*lease))
		noError(t, ours.Check(held))
		noError(t, c.Close())
		java.is("tryLock", true, "wait", ms(lease+soon))
		java.unlock()
	})
	t.Run("Redisson's", func(t *testing.T) {
		t.Parallel()
		s := newSite(t)
		client := s.java("watchdog", ms(lease))
		ours, java := rlock.NewLock(s.client(), "l"), client.lock("a", plainKind, "l")
		java.lock()
		_, err := ours.TryLock(t.Context(), 2*lease, 0)
		isError(t, err, rlock.ErrNotAcquired)
		java.is("isHeldByCurrentThread", true)
		client.close()
		held, err := ours.TryLock(t.Context(), lease+soon, 0)
		noError(t, err)
		noError(t, ours.Unlock(held))
	})
}
