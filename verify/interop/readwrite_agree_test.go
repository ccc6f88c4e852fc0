package interop

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/rlock"
)

// What one side reads, the other one may read and not write; what one side writes, the other one gets not at all. Both say the same
// of it: who has it, how often, and for how long.
func TestReadWriteBothSidesAgree(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	ctx := t.Context()
	l := fenced.NewRWLock(s.client(), "l")
	client := s.java()
	reads, writes := client.lock("a", readKind, "l"), client.lock("a", writeKind, "l")
	says := func(what string, locked kind) {
		t.Helper()
		reads.is("isLocked", locked == readKind)
		writes.is("isLocked", locked == writeKind)
		isLocked(t, what+", read", l.Read(), locked == readKind)
		isLocked(t, what+", write", l.Write(), locked == writeKind)
	}
	notJavas := func() {
		t.Helper()
		for _, java := range []*javaLock{reads, writes} {
			java.is("isHeldByCurrentThread", false)
			equal(t, "getHoldCount", java.number("getHoldCount"), 0)
			notTheirs(t, java)
		}
	}
	says("nobody", "")
	equal(t, "remainTimeToLive", reads.number("remainTimeToLive"), -2)

	// we read
	held, _, err := l.Read().LockLeaseAndGetToken(ctx, time.Hour)
	noError(t, err)
	says("we read", readKind)
	notJavas()
	about(t, "remainTimeToLive", milliseconds(reads.number("remainTimeToLive")), time.Hour)
	writes.is("tryLock", false, "wait", "0")
	reads.is("tryLock", true, "wait", "0")
	reads.is("tryLock", true, "wait", "0")
	equal(t, "getHoldCount", reads.number("getHoldCount"), 2)
	n, err := l.Read().HoldCount(held)
	noError(t, err)
	equal(t, "HoldCount", n, 1)
	reads.unlock()
	equal(t, "getHoldCount", reads.number("getHoldCount"), 1)
	reads.unlock()
	says("we still read", readKind)
	about(t, "remainTimeToLive", milliseconds(reads.number("remainTimeToLive")), time.Hour)
	notJavas()
	noError(t, l.Read().Check(held))
	noError(t, l.Read().Unlock(held))
	says("nobody reads", "")
	s.counterAlone("l")

	// Redisson reads
	reads.is("tryLock", true, "wait", "0", "lease", ms(time.Hour))
	says("Redisson reads", readKind)
	refused(t, l.Write())
	isError(t, l.Read().Unlock(ctx), rlock.ErrNotHeld)
	ttl, err := l.Read().TTL(ctx)
	noError(t, err)
	about(t, "TTL", ttl, time.Hour)
	held, _, err = l.Read().LockAndGetToken(ctx)
	noError(t, err)
	noError(t, l.Read().Unlock(held))
	reads.is("isHeldByCurrentThread", true)
	equal(t, "getHoldCount", reads.number("getHoldCount"), 1)
	about(t, "remainTimeToLive", milliseconds(reads.number("remainTimeToLive")), time.Hour)
	reads.unlock()
	says("nobody reads", "")
	s.counterAlone("l")

	// we write
	held, _, err = l.Write().LockLeaseAndGetToken(ctx, time.Hour)
	noError(t, err)
	inner, _, err := l.Write().LockAndGetToken(held)
	noError(t, err)
	inside, _, err := l.Read().LockAndGetToken(inner)
	noError(t, err)
	says("we write", writeKind)
	notJavas()
	about(t, "remainTimeToLive", milliseconds(writes.number("remainTimeToLive")), time.Hour)
	for _, java := range []*javaLock{reads, writes} {
		java.is("tryLock", false, "wait", "0")
	}
	noError(t, l.Write().Unlock(held)) // a level of the hold is open that reads
	noError(t, l.Write().Unlock(inner))
	says("we still write", writeKind)
	reads.is("tryLock", false, "wait", "0")
	noError(t, l.Read().Unlock(inside))
	says("nobody writes", "")
	s.counterAlone("l")

	// Redisson writes
	writes.is("tryLock", true, "wait", "0", "lease", ms(time.Hour))
	writes.is("tryLock", true, "wait", "0", "lease", ms(time.Hour))
	says("Redisson writes", writeKind)
	refused(t, l.Read())
	refused(t, l.Write())
	isError(t, l.Write().Unlock(ctx), rlock.ErrNotHeld)
	is, err := l.Write().IsHeld(ctx)
	noError(t, err)
	equal(t, "IsHeld", is, false)
	ttl, err = l.Write().TTL(ctx)
	noError(t, err)
	about(t, "TTL", ttl, 2*time.Hour) // Redisson adds the lease of a level
	writes.unlock()
	equal(t, "getHoldCount", writes.number("getHoldCount"), 1)
	refused(t, l.Read())
	writes.unlock()
	says("nobody writes", "")
	s.counterAlone("l")
}

// The fields mode and phase are no holds to Redisson, whatever the phase's token is: its unlock goes by the holds alone, and takes no
// longer. Redisson's hash gets its phase from the first of our readers, and ends with Redisson's last one. In mode write there is a
// second field, and no more.
func TestPhasesAreNoHoldsToRedisson(t *testing.T) {
	t.Parallel()
	const large = 1 << 40 // a loop of Redisson's that counts down from that does not end
	s := newSite(t)
	ctx := t.Context()
	noError(t, s.rdb.Set(ctx, "redisson_lock_token:{l}", large, 0).Err())
	l := fenced.NewRWLock(s.client(), "l")
	client := s.java()
	reads, other, writes := client.lock("a", readKind, "l"), client.lock("b", readKind, "l"), client.lock("a", writeKind, "l")
	reads.lock()
	held, token := take(t, withoutToken{l.Read()}, ctx)
	equal(t, "token", token, large+1)
	reads.lock()
	other.lock()
	other.unlock()
	reads.unlock()
	equal(t, "getHoldCount", reads.number("getHoldCount"), 1)
	second, token := take(t, withoutToken{l.Read()}, ctx)
	equal(t, "token of the second", token, large+1)
	noError(t, l.Read().Unlock(held))
	noError(t, l.Read().Unlock(second))
	equal(t, "phase", s.rdb.HGet(ctx, "l", "phase").Val(), fmt.Sprint("t", large+1))
	writes.is("tryLock", false, "wait", "0")
	reads.unlock()
	s.counterAlone("l")

	held, token = take(t, withoutToken{l.Write()}, ctx)
	equal(t, "token of the writer", token, large+2)
	waits := other.startLock()
	s.asleep(rwChannel("l"), 1)
	equal(t, "fields of a hold that writes", s.rdb.HLen(ctx, "l").Val(), 2)
	noError(t, l.Write().Unlock(held))
	client.must(waits)
	held, token = take(t, withoutToken{l.Read()}, ctx)
	equal(t, "token of the next phase", token, large+3)
	other.unlock()
	reads.is("isLocked", true)
	noError(t, l.Read().Unlock(held))
	s.counterAlone("l")

	writes.lock()
	call := begin(func() (context.Context, error) { return locktest.NoToken(l.Read().LockAndGetToken(ctx)) })
	s.asleep(rwChannel("l"), 1)
	equal(t, "fields of Redisson's hold that writes", s.rdb.HLen(ctx, "l").Val(), 2)
	writes.unlock()
	got := await(t, call, soon, "our reader")
	noError(t, got.err)
	token, err := l.Read().Token(got.ctx)
	noError(t, err)
	equal(t, "token after Redisson's writer", token, large+4)
	noError(t, l.Read().Unlock(got.ctx))
	s.counterAlone("l")
}

// Names with braces, and any UTF-8, mean the same lock on both sides: its hash, its channel, and the key of a hold that reads.
func TestReadWriteNames(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	ctx := t.Context()
	c, client := s.client(), s.java()
	for _, name := range []string{"plain", "a:{b}:c", "{a}{b}", "a{b", "a{}b", "a}b", "{{a}}", " ", "a b\tc\nd", "замок", "🔒", "%s%7B&=+ %%", `"\'`, "*", "?[a]", strings.Repeat("長", 100)} {
		l := fenced.NewRWLock(c, name)
		reads, writes := client.lock("a", readKind, name), client.lock("a", writeKind, name)
		held, _ := take(t, withoutToken{l.Read()}, ctx)
		reads.lock()
		equal(t, name+": keys of the readers", len(s.readKeys()), 2)
		reads.unlock() // Redisson deletes the hash where it finds no lease of ours
		if writes.do("tryLock", "wait", "0").truth() {
			t.Fatalf("%q: Redisson does not see that we read", name)
		}
		waits := writes.startLock()
		s.asleep(rwChannel(name), 1)
		noError(t, l.Read().Unlock(held))
		client.must(waits)
		refused(t, l.Read())
		writes.unlock()

		reads.lock()
		held, _ = take(t, withoutToken{l.Read()}, ctx)
		noError(t, l.Read().Unlock(held)) // the same with ours
		refused(t, l.Write())
		reads.unlock()
		noError(t, l.Write().Do(ctx, func(context.Context, int64) error { writes.is("isLocked", true); return nil }))
	}
	equal(t, "keys of readers", len(s.readKeys()), 0)
}
