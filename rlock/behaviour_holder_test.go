package rlock_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/redistest"
	"github.com/fencelock/fencelock/rlock"
)

// P11: the same lock twice is count 2; the inner Unlock keeps the lease and count 1; the last one removes the hash and
// publishes one message, "0".
func TestBehaviourReentry(t *testing.T) {
	rdb, l := bhOne(t)
	ctx := t.Context()
	messages := bhMessages(t, rdb)
	began := time.Now()
	outer := bhLock(t, l, ctx)
	field := bhField(t, rdb)
	inner := bhLock(t, l, outer)
	bhEqual(t, "field after the re-entry", bhField(t, rdb), field)
	bhEqual(t, "count in Redis", rdb.HGet(ctx, "l", field).Val(), "2")
	bhCount(t, l, inner, 2)
	bhCount(t, l, outer, 2)

	bhOK(t, l.Unlock(inner))
	bhEqual(t, "count in Redis", rdb.HGet(ctx, "l", field).Val(), "1")
	bhCount(t, l, outer, 1)
	if ttl := rdb.PTTL(ctx, "l").Val(); ttl < 30*time.Second-time.Since(began)-time.Millisecond {
		t.Errorf("the key lives for %v after the inner Unlock", ttl)
	}
	bhOK(t, outer.Err())
	bhOK(t, l.Check(outer))
	bhIs(t, inner.Err(), rlock.ErrUnlocked, context.Canceled)
	bhIs(t, context.Cause(inner), rlock.ErrUnlocked)
	bhIs(t, l.Check(inner), rlock.ErrUnlocked)
	_, err := l.TryLock(rlock.NewHolder(ctx), 0, 0)
	bhIs(t, err, rlock.ErrNotAcquired)
	bhNone(t, messages, 20*time.Millisecond, "a message for an inner Unlock")

	bhOK(t, l.Unlock(outer))
	bhEqual(t, "keys", len(rdb.Keys(ctx, "*").Val()), 0)
	message := bhWait(t, messages, bhSoon, "the message")
	bhEqual(t, "message", message.Payload, "0")
	bhEqual(t, "channel", message.Channel, bhChannel)
	bhNone(t, messages, 20*time.Millisecond, "a second message")
	bhIs(t, outer.Err(), rlock.ErrUnlocked, context.Canceled)
	bhIs(t, context.Cause(outer), rlock.ErrUnlocked)
	bhIs(t, l.Check(outer), rlock.ErrUnlocked)
	_, err = l.Lock(outer)
	bhIs(t, err, rlock.ErrUnlocked)
}

// bhMessages subscribes to the channel of the lock "l".
func bhMessages(t testing.TB, rdb *redis.Client) <-chan *redis.Message {
	t.Helper()
	sub := rdb.Subscribe(context.Background(), bhChannel)
	t.Cleanup(func() { _ = sub.Close() })
	_, err := sub.Receive(context.Background())
	bhOK(t, err)
	return sub.Channel()
}

// bhField returns the hold's field in the lock "l".
func bhField(t testing.TB, rdb *redis.Client) string {
	t.Helper()
	field := ""
	for f := range rdb.HGetAll(context.Background(), "l").Val() {
		if !strings.HasSuffix(f, "#") {
			if field != "" {
				t.Fatalf("two holds: %q and %q", field, f)
			}
			field = f
		}
	}
	return field
}

// Re-entry is by the hold's newest level on the context's chain: contexts derived from the hold's re-enter, and every
// acquiring call does, without a wait.
func TestBehaviourReentryThroughDerivedContexts(t *testing.T) {
	_, l := bhOne(t)
	outer := bhLock(t, l, t.Context())
	type key struct{}
	deadline, cancel := context.WithTimeout(outer, time.Hour)
	defer cancel()
	for _, derived := range []context.Context{
		outer,
		deadline,
		context.WithValue(outer, key{}, 1),
		context.WithValue(deadline, key{}, 1),
		context.WithoutCancel(outer),
	} {
		for _, c := range bhCalls {
			inner, err := c.call(l, derived)
			bhOK(t, err)
			bhCount(t, l, inner, 2)
			innermost, err := c.call(l, inner)
			bhOK(t, err)
			bhCount(t, l, outer, 3)
			bhOK(t, l.Unlock(innermost))
			bhOK(t, l.Unlock(inner))
			bhCount(t, l, outer, 1)
		}
	}
	bhOK(t, l.Unlock(outer))
	bhLocked(t, l, false)
}

// Two locks inside each other, by a function that does not know of the outer hold: both are held, each is unlocked by
// its own context, and each one's context ends with its own Unlock.
func TestBehaviourTwoLocks(t *testing.T) {
	rdb := redistest.New(t)
	c := bhClient(t, rdb)
	a, b := rlock.NewLock(c, "a"), rlock.NewLock(c, "b")
	outer := bhLock(t, a, t.Context())
	transfer := func(ctx context.Context) {
		inB := bhLock(t, b, ctx)
		inA := bhLock(t, a, inB) // re-enters, though b is in between
		bhCount(t, a, inA, 2)
		bhCount(t, b, inA, 1)
		bhOK(t, a.Unlock(inA))
		bhOK(t, b.Check(inB))
		bhOK(t, b.Unlock(inB))
		bhIs(t, inB.Err(), rlock.ErrUnlocked)
	}
	transfer(outer)
	bhOK(t, outer.Err())
	bhCount(t, a, outer, 1)
	bhLocked(t, b, false)
	bhOK(t, a.Unlock(outer))
	bhLocked(t, a, false)
}

// P11: unlocked in the wrong order, each Unlock releases its own lock; the inner context ends with the outer one, and
// Check still knows that the inner lock is held.
func TestBehaviourTwoLocksInTheWrongOrder(t *testing.T) {
	rdb := redistest.New(t)
	c := bhClient(t, rdb)
	a, b := rlock.NewLock(c, "a"), rlock.NewLock(c, "b")
	inA := bhLock(t, a, t.Context())
	inB := bhLock(t, b, inA)
	bhOK(t, a.Unlock(inA))
	bhLocked(t, a, false)
	bhLocked(t, b, true)
	bhIs(t, inB.Err(), rlock.ErrUnlocked, context.Canceled)
	bhOK(t, b.Check(inB))
	bhOK(t, b.Unlock(inB))
	bhLocked(t, b, false)
	bhIs(t, a.Unlock(inA), rlock.ErrNotHeld)
	bhIs(t, b.Unlock(inB), rlock.ErrNotHeld)
}

// The same with two levels of one lock: the count is right at every step.
func TestP11_LevelsInTheWrongOrder(t *testing.T) {
	rdb, l := bhOne(t)
	outer := bhLock(t, l, t.Context())
	inner := bhLock(t, l, outer)
	bhOK(t, l.Unlock(outer))
	bhEqual(t, "count in Redis", rdb.HGet(t.Context(), "l", bhField(t, rdb)).Val(), "1")
	bhIs(t, l.Unlock(outer), rlock.ErrNotHeld)
	bhLocked(t, l, true)
	bhOK(t, l.Check(inner))
	bhOK(t, l.Unlock(inner))
	bhLocked(t, l, false)
}

// P4: context.WithoutCancel carries the holder, but not the end of the hold: Check tells, and Lock does not take afresh
// what was lost.
func TestBehaviourWithoutCancel(t *testing.T) {
	rdb, l := bhOne(t)
	held := bhLock(t, l, t.Context())
	detached := context.WithoutCancel(held)
	bhOK(t, l.Check(detached))
	bhCount(t, l, detached, 1)
	freed, err := l.ForceUnlock(t.Context())
	bhOK(t, err)
	bhEqual(t, "freed", freed, true)
	bhOK(t, detached.Err())
	bhIs(t, l.Check(detached), rlock.ErrLost)
	bhCount(t, l, detached, 0)
	for _, c := range bhCalls {
		got, err := c.call(l, detached)
		bhIs(t, err, rlock.ErrLost)
		bhEqual(t, "context", got, detached)
	}
	bhEqual(t, "keys", len(rdb.Keys(t.Context(), "*").Val()), 0)
	bhIs(t, l.Unlock(detached), rlock.ErrLost)
	bhIs(t, l.Unlock(detached), rlock.ErrNotHeld)

	held = bhLock(t, l, t.Context())
	detached = context.WithoutCancel(held)
	bhOK(t, l.Unlock(detached))
	bhLocked(t, l, false)
	bhIs(t, held.Err(), rlock.ErrUnlocked)
	bhIs(t, l.Check(detached), rlock.ErrUnlocked)
}

// Inv1: workers that share a context exclude each other: with a context of NewHolder, and with a hold of another lock.
func TestBehaviourWorkersExclude(t *testing.T) {
	rdb := redistest.New(t)
	c := bhClient(t, rdb)
	l := rlock.NewLock(c, "l")
	t.Run("a new holder", func(t *testing.T) { bhExclude(t, l, rlock.NewHolder(t.Context()), 5) })
	t.Run("another lock", func(t *testing.T) {
		other := rlock.NewLock(c, "other")
		outer := bhLock(t, other, t.Context())
		bhExclude(t, l, outer, 5)
		bhOK(t, other.Unlock(outer))
	})
	t.Run("no holder", func(t *testing.T) { bhExclude(t, l, t.Context(), 5) })
	bhLocked(t, l, false)
}

// A goroutine with a holder of its own waits for its parent, and then gets the lock.
func TestBehaviourNewHolderWaits(t *testing.T) {
	rdb, l := bhOne(t, rlock.WithPollInterval(time.Hour))
	parent := bhLock(t, l, t.Context())
	_, err := l.TryLock(rlock.NewHolder(parent), 0, 0)
	bhIs(t, err, rlock.ErrNotAcquired)
	bhIs(t, l.Check(rlock.NewHolder(parent)), rlock.ErrNotHeld)
	child := bhGo(func() (context.Context, error) { return l.Lock(rlock.NewHolder(parent)) })
	bhSubscribed(t, rdb)
	bhNone(t, child, 10*time.Millisecond, "the child did not wait")
	bhOK(t, l.Unlock(parent))
	got := bhWait(t, child, bhSoon, "the child gets the lock")
	bhOK(t, got.err)
	bhOK(t, got.ctx.Err()) // it has not ended with its parent's hold
	bhCount(t, l, got.ctx, 1)
	bhCount(t, l, parent, 0)
	bhOK(t, l.Unlock(got.ctx))
}

// P4: with a holder from NewHolder the returned context may be thrown away.
func TestBehaviourNewHolderKeepsTheHold(t *testing.T) {
	rdb, l := bhOne(t)
	ctx := rlock.NewHolder(t.Context())
	bhIs(t, l.Check(ctx), rlock.ErrNotHeld)
	bhCount(t, l, ctx, 0)
	bhLock(t, l, ctx)
	bhCount(t, l, ctx, 1)
	bhOK(t, l.Check(ctx))
	bhOK(t, l.Unlock(ctx))
	bhLocked(t, l, false)
	bhOK(t, ctx.Err())

	// A second Unlock touches nothing, whoever has the lock now.
	next := bhLock(t, l, t.Context())
	before := bhField(t, rdb)
	bhIs(t, l.Unlock(ctx), rlock.ErrNotHeld)
	bhEqual(t, "field", bhField(t, rdb), before)
	bhOK(t, next.Err())
	bhOK(t, l.Unlock(next))

	// And again: the context is as good as new.
	bhLock(t, l, ctx)
	bhOK(t, l.Unlock(ctx))
}

// P11: a second Unlock of an inner level touches nothing of the outer one.
func TestP11_SecondUnlockOfAnInnerLevel(t *testing.T) {
	_, l := bhOne(t)
	outer := bhLock(t, l, t.Context())
	inner := bhLock(t, l, outer)
	bhOK(t, l.Unlock(inner))
	bhIs(t, l.Unlock(inner), rlock.ErrNotHeld)
	bhCount(t, l, outer, 1)
	bhOK(t, outer.Err())
	bhOK(t, l.Unlock(outer))
}

type bhKey string

// The values of the user's contexts are seen through a hold's context and through NewHolder; the deadline through the
// hold's context.
func TestBehaviourValues(t *testing.T) {
	_, l := bhOne(t)
	deadline := time.Now().Add(time.Hour)
	below, cancel := context.WithDeadline(context.WithValue(t.Context(), bhKey("below"), 1), deadline)
	defer cancel()
	held := bhLock(t, l, below)
	above := context.WithValue(held, bhKey("above"), 2)
	fresh := rlock.NewHolder(above)
	for _, ctx := range []context.Context{above, fresh} {
		bhEqual(t, "value below", ctx.Value(bhKey("below")), any(1))
		bhEqual(t, "value above", ctx.Value(bhKey("above")), any(2))
		bhEqual(t, "no value", ctx.Value(bhKey("none")), nil)
		d, ok := ctx.Deadline()
		bhEqual(t, "deadline", ok && d.Equal(deadline), true)
	}
	bhOK(t, l.Unlock(held))
	bhIs(t, above.Err(), context.Canceled)
	bhIs(t, context.Cause(above), rlock.ErrUnlocked)
	bhOK(t, fresh.Err())
	cancel()
	bhIs(t, fresh.Err(), context.Canceled)
}

// The user's cancellation ends the hold's context, with the user's cause; the lock is held until Unlock, which works
// (Inv7).
func TestBehaviourUserCancels(t *testing.T) {
	_, l := bhOne(t)
	why := errors.New("the user's reason")
	for name, wrap := range map[string]func(context.Context) context.Context{
		"plain":      func(ctx context.Context) context.Context { return ctx },
		"value":      func(ctx context.Context) context.Context { return context.WithValue(ctx, bhKey("k"), 1) },
		"new holder": rlock.NewHolder,
	} {
		user, cancel := context.WithCancelCause(t.Context())
		held := bhLock(t, l, wrap(user))
		inner := bhLock(t, l, held)
		cancel(why)
		for _, ctx := range []context.Context{held, inner} {
			<-ctx.Done()
			bhIs(t, ctx.Err(), context.Canceled)
			bhIsNot(t, ctx.Err(), rlock.ErrLost, rlock.ErrUnlocked)
			if cause := context.Cause(ctx); cause != why {
				t.Errorf("%s: cause %v, want the user's", name, cause)
			}
		}
		bhIs(t, l.Check(inner), context.Canceled, why)
		bhIsNot(t, l.Check(inner), rlock.ErrLost) // it is still held
		bhLocked(t, l, true)
		bhOK(t, l.Unlock(inner))
		bhOK(t, l.Unlock(held))
		bhLocked(t, l, false)
	}
}

// A cancellable context above the hold's ends an inner hold of another lock, with its cause.
func TestBehaviourUserCancelsAboveAHold(t *testing.T) {
	rdb, l := bhOne(t)
	other := rlock.NewLock(bhClient(t, rdb), "other")
	why := errors.New("the user's reason")
	outer := bhLock(t, l, t.Context())
	middle, cancel := context.WithCancelCause(outer)
	inner := bhLock(t, other, middle)
	cancel(why)
	bhWait(t, inner.Done(), bhSoon, "the inner context ends")
	bhIs(t, inner.Err(), context.Canceled)
	bhIs(t, context.Cause(inner), why)
	bhOK(t, outer.Err())
	bhOK(t, other.Unlock(inner))
	bhOK(t, l.Unlock(outer))
}

// P5: the errors of a hold's context are ErrLost or ErrUnlocked and context.Canceled in one, its causes as well, and
// what is derived from it ends with it.
func TestBehaviourErrorsOfTheContext(t *testing.T) {
	_, l := bhOne(t)
	for _, c := range []struct {
		want error
		end  func(held context.Context)
	}{
		{rlock.ErrUnlocked, func(held context.Context) { bhOK(t, l.Unlock(held)) }},
		{rlock.ErrLost, func(held context.Context) {
			_, err := l.ForceUnlock(t.Context())
			bhOK(t, err)
		}},
	} {
		held := bhLock(t, l, t.Context())
		derived, cancel := context.WithTimeout(held, time.Hour)
		defer cancel()
		after := make(chan struct{})
		context.AfterFunc(held, func() { close(after) })
		c.end(held)
		bhWait(t, held.Done(), bhSoon, "the context ends")
		bhIs(t, held.Err(), c.want, context.Canceled)
		bhIs(t, context.Cause(held), c.want, context.Canceled)
		bhWait(t, derived.Done(), bhSoon, "the derived context ends")
		bhIs(t, derived.Err(), context.Canceled)
		bhIs(t, context.Cause(derived), c.want)
		bhWait(t, after, bhSoon, "AfterFunc runs")
		var e *rlock.Error
		if err := l.Unlock(held); !errors.As(err, &e) {
			t.Errorf("error %v is no *Error", err)
		}
	}
}

// P2: goroutines that share a hold may re-enter it one after the other at any speed; the count in Redis is right when
// they are done.
func TestBehaviourCountAfterManyReentries(t *testing.T) {
	rdb, l := bhOne(t)
	held := bhLock(t, l, t.Context())
	ctx := held
	var levels []context.Context
	for range 20 {
		ctx = bhLock(t, l, ctx)
		levels = append(levels, ctx)
	}
	bhCount(t, l, held, 21)
	var unlocks sync.WaitGroup
	for _, level := range levels { // at once, in any order
		unlocks.Go(func() {
			if err := l.Unlock(level); err != nil {
				t.Errorf("Unlock: %v", err)
			}
		})
	}
	unlocks.Wait()
	bhCount(t, l, held, 1)
	bhEqual(t, "count in Redis", rdb.HGet(t.Context(), "l", bhField(t, rdb)).Val(), "1")
	bhOK(t, l.Unlock(held))
	bhEqual(t, "keys", len(rdb.Keys(t.Context(), "*").Val()), 0)
}

// NewHolder's doc: the new context ends with the context below the outermost hold of ctx. Without a hold that is ctx.
func TestBehaviourNewHolderEndsWithItsContext(t *testing.T) {
	parent, cancel := context.WithCancel(rlock.NewHolder(t.Context()))
	child := rlock.NewHolder(parent)
	cancel()
	bhIs(t, child.Err(), context.Canceled)
}

// The same with a hold in between: below it is the cancelled context, not what that holder was made from.
func TestBehaviourNewHolderEndsWithTheContextBelowTheHold(t *testing.T) {
	_, l := bhOne(t)
	parent, cancel := context.WithCancel(rlock.NewHolder(t.Context()))
	held := bhLock(t, l, parent)
	child := rlock.NewHolder(held)
	cancel()
	bhIs(t, child.Err(), context.Canceled)
	bhOK(t, l.Unlock(held))
}

// Inv1, DESIGN 3 "re-entry follows the context": workers that lock the same name with the same context exclude each
// other, also where that context is an outer hold of the same lock.
func TestBehaviourWorkersOnAnOuterHoldOfTheSameLock(t *testing.T) {
	_, l := bhOne(t)
	outer := bhLock(t, l, t.Context())
	bhExclude(t, l, outer, 5)
	bhCount(t, l, outer, 1)
	bhOK(t, l.Unlock(outer))
}

// bhExclude has eight workers lock and unlock with one shared context and requires that they exclude each other.
func bhExclude(t *testing.T, l *rlock.Lock, shared context.Context, rounds int) {
	t.Helper()
	var workers sync.WaitGroup
	var inside, most, done atomic.Int32
	for range 8 {
		workers.Go(func() {
			for range rounds {
				held, err := l.TryLock(shared, time.Minute, 0)
				if err != nil {
					t.Errorf("Lock: %v", err)
					return
				}
				n := inside.Add(1)
				for old := most.Load(); n > old && !most.CompareAndSwap(old, n); old = most.Load() {
				}
				if n != 1 {
					t.Errorf("%d workers are inside", n)
				}
				time.Sleep(time.Millisecond)
				inside.Add(-1)
				done.Add(1)
				if err := l.Unlock(held); err != nil {
					t.Errorf("Unlock: %v", err)
					return
				}
			}
		})
	}
	workers.Wait()
	if !t.Failed() {
		bhEqual(t, "sections", int(done.Load()), 8*rounds)
	}
	bhEqual(t, "most workers inside at once", most.Load(), 1)
}
