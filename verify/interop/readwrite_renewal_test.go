package interop

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/fencelock/fencelock/rlock"
)

// renewedLease is a lease that both sides renew each second, and that a machine with many other things to do does not sleep through.
const renewedLease = 3 * time.Second

// inTime gives up a test in which a lease was not renewed, where the machine was late for the most of a lease.
func inTime(t *testing.T, began time.Time, lease time.Duration, renewed bool) {
	t.Helper()
	if late := redistest.Late(began); !renewed && late > lease/2 {
		t.Skipf("the machine was late for %v", late)
	}
}

// Both sides read, and their watchdogs renew, each its own lease and neither the other's away: no writer of either side gets in for
// several leases. Who goes leaves the other one its lease.
func TestRenewalsOfReaders(t *testing.T) {
	t.Parallel()
	const lease = renewedLease
	for _, goes := range []string{"Redisson", "ours"} {
		t.Run(goes+" goes first", func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			ctx := t.Context()
			client, other := s.java("watchdog", ms(lease)), s.java()
			reads, writes := client.lock("a", readKind, "l"), other.lock("a", writeKind, "l")
			l, waits := fenced.NewRWLock(s.client(rlock.WithLease(lease)), "l"), side(s.client(), writeKind, "l")
			held, token := take(t, withoutToken{l.Read()}, ctx)
			reads.lock()
			keptOut := func(long time.Duration) {
				t.Helper()
				began := time.Now()
				tried := writes.start("tryLock", "wait", ms(long))
				_, _, err := waits.TryLockAndGetToken(ctx, long, 0)
				got := other.must(tried).truth()
				inTime(t, began, lease, err != nil && !got)
				isError(t, err, rlock.ErrNotAcquired)
				equal(t, "Redisson's writer", got, false)
			}
			keptOut(2 * lease)
			noError(t, l.Read().Check(held))
			reads.is("isHeldByCurrentThread", true)
			gone, stays := func() { noError(t, l.Read().Unlock(held)) }, reads.unlock
			if goes == "Redisson" {
				gone, stays = stays, gone
			}
			gone()
			equal(t, "keys of readers", len(s.readKeys()), 1)
			keptOut(3 * lease / 2)
			stays()
			held, next := take(t, withoutToken{waits}, ctx)
			if next <= token {
				t.Errorf("token %d writes after %d", next, token)
			}
			noError(t, waits.Unlock(held))
			s.counterAlone("l")
		})
	}
}

// A reader whose client is gone keeps writers of both sides out for its lease, and no longer, beside a reader of the other side too.
func TestReadersThatAreGone(t *testing.T) {
	t.Parallel()
	const lease = shortLease
	t.Run("ours", func(t *testing.T) {
		t.Parallel()
		s := newSite(t)
		c := s.client(rlock.WithLease(lease))
		l, waits := fenced.NewRWLock(c, "l"), side(s.client(), writeKind, "l")
		client := s.java() // which renews each 10 s
		reads, writes := client.lock("a", readKind, "l"), client.lock("b", writeKind, "l")
		_, _ = take(t, withoutToken{l.Read()}, t.Context())
		noError(t, c.Close())
		writes.is("tryLock", false, "wait", "0")
		writes.is("tryLock", true, "wait", ms(lease+soon))
		writes.unlock()

		c = s.client(rlock.WithLease(lease))
		l = fenced.NewRWLock(c, "l")
		_, _ = take(t, withoutToken{l.Read()}, t.Context())
		reads.lock()
		noError(t, c.Close())
		call := begin(func() (context.Context, error) { return locktest.NoToken(waits.LockAndGetToken(t.Context())) })
		writes.is("tryLock", false, "wait", ms(lease+lease/2))
		equal(t, "keys of readers", len(s.readKeys()), 1)
		reads.unlock() // and deletes the hash, with the field of the one that is gone
		got := await(t, call, soon, "our writer")
		noError(t, got.err)
		noError(t, waits.Unlock(got.ctx))
		s.counterAlone("l")
	})
	t.Run("Redisson's", func(t *testing.T) {
		t.Parallel()
		s := newSite(t)
		l := fenced.NewRWLock(s.client(rlock.WithLease(renewedLease)), "l")
		client := s.java("watchdog", ms(lease))
		reads := client.lock("a", readKind, "l")
		reads.lock()
		client.close()
		held, _, err := l.Write().TryLockAndGetToken(t.Context(), lease+soon, 0)
		noError(t, err)
		noError(t, l.Write().Unlock(held))

		client = s.java("watchdog", ms(renewedLease))
		reads = client.lock("a", readKind, "l")
		reads.lock()
		held, _ = take(t, withoutToken{l.Read()}, t.Context())
		client.close()
		began := time.Now()
		_, _, err = l.Write().TryLockAndGetToken(rlock.NewHolder(t.Context()), 3*renewedLease/2, 0)
		inTime(t, began, renewedLease, err != nil)
		isError(t, err, rlock.ErrNotAcquired)
		equal(t, "keys of readers", len(s.readKeys()), 1)
		noError(t, l.Read().Check(held))
		noError(t, l.Read().Unlock(held)) // and deletes the hash, with the field of the one that is gone
		free(t, withoutToken{l.Write()})
		s.counterAlone("l")
	})
}

// A writer's watchdog keeps readers of the other side out, and lets them in when the client is gone.
func TestRenewalsOfWriters(t *testing.T) {
	t.Parallel()
	const lease = renewedLease
	t.Run("ours", func(t *testing.T) {
		t.Parallel()
		s := newSite(t)
		c := s.client(rlock.WithLease(lease))
		l, reads := fenced.NewRWLock(c, "l"), s.java().lock("a", readKind, "l")
		held, _ := take(t, withoutToken{l.Write()}, t.Context())
		began := time.Now()
		got := reads.do("tryLock", "wait", ms(3*lease/2)).truth()
		inTime(t, began, lease, !got)
		equal(t, "Redisson's reader", got, false)
		noError(t, l.Write().Check(held))
		noError(t, c.Close())
		reads.is("tryLock", true, "wait", ms(lease+soon))
		reads.unlock()
		s.counterAlone("l")
	})
	t.Run("Redisson's", func(t *testing.T) {
		t.Parallel()
		s := newSite(t)
		client := s.java("watchdog", ms(lease))
		l, writes := fenced.NewRWLock(s.client(), "l"), client.lock("a", writeKind, "l")
		writes.lock()
		began := time.Now()
		_, _, err := l.Read().TryLockAndGetToken(t.Context(), 3*lease/2, 0)
		inTime(t, began, lease, err != nil)
		isError(t, err, rlock.ErrNotAcquired)
		writes.is("isHeldByCurrentThread", true)
		client.close()
		held, _, err := l.Read().TryLockAndGetToken(t.Context(), lease+soon, 0)
		noError(t, err)
		noError(t, l.Read().Unlock(held))
		s.counterAlone("l")
	})
}

// A restart of Redis takes the lock away, which its holder hears of. What is taken after it is renewed.
func TestSidesAfterARestart(t *testing.T) {
	t.Parallel()
	const lease = renewedLease
	for _, k := range []kind{readKind, writeKind} {
		t.Run(string(k), func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			l := side(s.client(rlock.WithLease(lease)), k, "l")
			held, _ := take(t, withoutToken{l}, t.Context())
			s.server.Restart() // the data are gone
			await(t, held.Done(), lease+soon, "the hold is found lost")
			isError(t, context.Cause(held), rlock.ErrLost)
			isError(t, l.Unlock(held), rlock.ErrLost)
			held, _ = take(t, withoutToken{l}, t.Context())
			began := time.Now()
			got := s.java().lock("a", writeKind, "l").do("tryLock", "wait", ms(3*lease/2)).truth()
			inTime(t, began, lease, !got)
			equal(t, "Redisson's writer", got, false)
			noError(t, l.Check(held))
			noError(t, l.Unlock(held))
			s.counterAlone("l")
		})
	}
}

// The lock lasts as long as the longest lease of those that read and have not unlocked, whoever leaves it.
func TestLeasesOfReaders(t *testing.T) {
	t.Parallel()
	const lease = shortLease
	ended := func(t *testing.T, l *fenced.RWLock, began time.Time) {
		t.Helper()
		waits := time.Now()
		held, _, err := l.Write().LockAndGetToken(rlock.NewHolder(t.Context()))
		noError(t, err)
		if time.Since(began) < lease || time.Since(waits) > lease+soon {
			t.Errorf("the writer is in %v after the reader, and has waited for %v", time.Since(began), time.Since(waits))
		}
		noError(t, l.Write().Unlock(held))
	}
	t.Run("Redisson leaves", func(t *testing.T) {
		t.Parallel()
		s := newSite(t)
		l, reads := fenced.NewRWLock(s.client(), "l"), s.java().lock("a", readKind, "l")
		began := time.Now()
		held, _, err := l.Read().LockLeaseAndGetToken(t.Context(), lease)
		noError(t, err)
		reads.do("lock", "lease", ms(time.Hour))
		reads.unlock()
		reads.do("lock", "lease", "1")
		_, _ = reads.try("unlock") // its lease may be over
		ended(t, l, began)
		isError(t, l.Read().Unlock(held), rlock.ErrLost)
		s.counterAlone("l")
	})
	t.Run("we leave", func(t *testing.T) {
		t.Parallel()
		s := newSite(t)
		l, reads := fenced.NewRWLock(s.client(), "l"), s.java().lock("a", readKind, "l")
		began := time.Now()
		reads.do("lock", "lease", ms(lease))
		for _, longer := range []time.Duration{time.Hour, lease / 2} {
			held, _, err := l.Read().LockLeaseAndGetToken(t.Context(), longer)
			noError(t, err)
			noError(t, l.Read().Unlock(held))
		}
		ended(t, l, began)
		s.counterAlone("l")
	})
}

// The lease of a writer of either side that has gone lets both sides' readers in. The writer hears of it.
func TestAWritersLeaseRunsOut(t *testing.T) {
	t.Parallel()
	const lease = shortLease
	for _, byJava := range []bool{false, true} {
		t.Run(fmt.Sprintf("Redisson's %v", byJava), func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			l, other := fenced.NewRWLock(s.client(), "l"), fenced.NewRWLock(s.client(), "l")
			client := s.java()
			reads, writes := client.lock("a", readKind, "l"), client.lock("b", writeKind, "l")
			began := time.Now()
			var held context.Context
			if byJava {
				writes.do("lock", "lease", ms(lease))
			} else {
				var err error
				held, _, err = l.Write().LockLeaseAndGetToken(t.Context(), lease)
				noError(t, err)
			}
			locked := time.Now()
			waits := reads.startLock()
			reader, _, err := other.Read().LockAndGetToken(t.Context())
			noError(t, err)
			client.must(waits)
			if time.Since(began) < lease || time.Since(locked) > lease+soon {
				t.Errorf("the readers are in %v after the writer", time.Since(locked))
			}
			if byJava {
				notTheirs(t, writes)
			} else {
				isError(t, held.Err(), rlock.ErrLost)
				isError(t, l.Write().Unlock(held), rlock.ErrLost)
			}
			noError(t, other.Read().Unlock(reader))
			reads.unlock()
			s.counterAlone("l")
		})
	}
}

// A reader with levels is renewed no more after the last unlock, beside others that read.
func TestNoRenewalOutlivesAReader(t *testing.T) {
	t.Parallel()
	const lease = shortLease
	s := newSite(t)
	l, reads := fenced.NewRWLock(s.client(rlock.WithLease(lease)), "l"), s.java().lock("a", readKind, "l")
	reads.lock()
	outer, _ := take(t, withoutToken{l.Read()}, t.Context())
	inner, _ := take(t, withoutToken{l.Read()}, outer)
	noError(t, l.Read().Unlock(inner))
	noError(t, l.Read().Unlock(outer))
	reads.unlock()
	for began := time.Now(); time.Since(began) < lease; time.Sleep(10 * time.Millisecond) {
		s.counterAlone("l")
	}
}

// Redisson's renewal of a reader sets the hash to its own lease, and before 4.6.0 the keys of all readers too: a longer lease of ours beside
// it does not count, as docs/redisson.md says.
func TestALeaseLongerThanRedissonsWatchdog(t *testing.T) {
	t.Parallel()
	const lease = shortLease
	s := newSite(t)
	client := s.java("watchdog", ms(lease))
	l, reads := fenced.NewRWLock(s.client(), "l"), client.lock("a", readKind, "l")
	held, _, err := l.Read().LockLeaseAndGetToken(t.Context(), time.Hour)
	noError(t, err)
	reads.lock()
	redistest.Eventually(t, patience, func() bool { return s.rdb.PTTL(t.Context(), "l").Val() <= lease }, "Redisson's renewal sets the hash to its lease")
	client.close()
	writes, _, err := l.Write().TryLockAndGetToken(rlock.NewHolder(t.Context()), lease+soon, 0)
	noError(t, err)
	noError(t, l.Write().Unlock(writes))
	isError(t, l.Read().Unlock(held), rlock.ErrLost)
	s.counterAlone("l")
}
