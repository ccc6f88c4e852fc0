package interop

import (
	"context"
	"testing"
	"time"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/rlock"
)

// Holds of ours that Redisson forces open: their contexts end with ErrLost, their Unlock says so, and takes nothing from whoever has
// the lock by then.
func TestRedissonForcesOurSidesOpen(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	l, second := fenced.NewRWLock(s.client(), "l"), fenced.NewRWLock(s.client(), "l")
	client := s.java()
	reads, writes := client.lock("a", readKind, "l"), client.lock("a", writeKind, "l")
	a, _ := take(t, withoutToken{l.Read()}, t.Context())
	b, _ := take(t, withoutToken{second.Read()}, t.Context())
	writes.is("forceUnlock", false)
	reads.is("forceUnlock", true)
	reads.is("forceUnlock", false)
	reads.is("isLocked", false)
	writes.lock()
	for _, held := range []context.Context{a, b} {
		await(t, held.Done(), soon, "the context of a hold that read ends")
		isError(t, context.Cause(held), rlock.ErrLost)
	}
	isError(t, l.Read().Check(a), rlock.ErrLost)
	isError(t, l.Read().Unlock(a), rlock.ErrLost)
	isError(t, second.Read().Unlock(b), rlock.ErrLost)
	writes.is("isHeldByCurrentThread", true)
	writes.unlock()
	free(t, withoutToken{l.Write()})

	held, _ := take(t, withoutToken{l.Write()}, t.Context())
	reads.is("forceUnlock", false)
	writes.is("forceUnlock", true)
	reads.lock()
	await(t, held.Done(), soon, "the context of the hold that wrote ends")
	isError(t, context.Cause(held), rlock.ErrLost)
	isError(t, l.Write().Unlock(held), rlock.ErrLost)
	reads.is("isHeldByCurrentThread", true)
	reads.unlock()
	free(t, withoutToken{l.Write()})
}

// Holds of Redisson's that we force open, with levels of leases of their own: the waiters of both sides are woken, and Redisson's unlock
// takes nothing from whoever has the lock by then.
func TestWeForceRedissonsSidesOpen(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	l, waits := fenced.NewRWLock(s.client(), "l"), fenced.NewRWLock(s.client(), "l")
	client := s.java()
	for _, k := range []kind{readKind, writeKind} {
		forced, not := l.Read(), l.Write()
		if k == writeKind {
			forced, not = not, forced
		}
		java, other, waiter := client.lock("a", k, "l"), client.lock("b", readKind, "l"), client.lock("c", writeKind, "l")
		java.do("lock", "lease", ms(time.Minute))
		java.do("lock", "lease", ms(time.Hour))
		if k == readKind {
			other.do("lock", "lease", ms(10*time.Minute))
		}
		waiting := waiter.startLock()
		s.listened(rwChannel("l"), 1)
		call := begin(func() (context.Context, error) { return locktest.NoToken(waits.Write().LockAndGetToken(t.Context())) })
		s.inLine("l", 1)
		s.asleep(rwChannel("l"), 2)
		freed, err := not.ForceUnlock(t.Context())
		noError(t, err)
		equal(t, "freed by the other side", freed, false)
		freed, err = forced.ForceUnlock(t.Context())
		noError(t, err)
		equal(t, "freed", freed, true)
		select { // whichever side is first leaves it to the other one
		case a := <-waiting:
			noError(t, a.err())
			notTheirs(t, java)
			waiter.unlock()
			got := await(t, call, soon, "our waiter")
			noError(t, got.err)
			noError(t, waits.Write().Unlock(got.ctx))
		case got := <-call:
			noError(t, got.err)
			notTheirs(t, java)
			s.asleep(rwChannel("l"), 1) // a writer's release wakes those of Redisson's threads that sleep
			noError(t, waits.Write().Unlock(got.ctx))
			noError(t, await(t, waiting, soon, "Redisson's waiter").err())
			waiter.unlock()
		case <-time.After(soon):
			t.Fatalf("nobody gets the lock after the %s side was forced open", k)
		}
		java.is("isHeldByCurrentThread", false)
		freed, err = forced.ForceUnlock(t.Context())
		noError(t, err)
		equal(t, "freed again", freed, false)
		free(t, withoutToken{l.Write()})
	}
}
