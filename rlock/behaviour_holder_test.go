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

	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/fencelock/fencelock/rlock"
)

// P11: the same lock twice is count 2; the inner Unlock keeps the lease and count 1; the last one removes the hash and
// publishes one message, "0".
func TestBehaviourReentry(t *testing.T) {
	rdb, l := newLock(t)
	ctx := t.Context()
	messages := messagesOf(t, rdb)
	began := time.Now()
	outer := take(t, l, ctx)
	field := fieldInRedis(t, rdb)
	inner := take(t, l, outer)
	locktest.Equal(t, "field after the re-entry", fieldInRedis(t, rdb), field)
	locktest.Equal(t, "count in Redis", rdb.HGet(ctx, "l", field).Val(), "2")
	wantHolds(t, l, inner, 2)
	wantHolds(t, l, outer, 2)

	locktest.NoError(t, l.Unlock(inner))
	locktest.Equal(t, "count in Redis", rdb.HGet(ctx, "l", field).Val(), "1")
	wantHolds(t, l, outer, 1)
	if ttl := rdb.PTTL(ctx, "l").Val(); ttl < 30*time.Second-time.Since(began)-time.Millisecond {
		t.Errorf("the key lives for %v after the inner Unlock", ttl)
	}
	locktest.NoError(t, outer.Err())
	locktest.NoError(t, l.Check(outer))
	locktest.IsError(t, inner.Err(), rlock.ErrUnlocked, context.Canceled)
	locktest.IsError(t, context.Cause(inner), rlock.ErrUnlocked)
	locktest.IsError(t, l.Check(inner), rlock.ErrUnlocked)
	_, err := l.TryLock(rlock.NewHolder(ctx), 0, 0)
	locktest.IsError(t, err, rlock.ErrNotAcquired)
	locktest.NothingComes(t, messages, 20*time.Millisecond, "a message for an inner Unlock")

	locktest.NoError(t, l.Unlock(outer))
	locktest.Equal(t, "keys", len(rdb.Keys(ctx, "*").Val()), 0)
	message := redistest.Await(t, soon, messages, "the message")
	locktest.Equal(t, "message", message.Payload, "0")
	locktest.Equal(t, "channel", message.Channel, lockChannel)
	locktest.NothingComes(t, messages, 20*time.Millisecond, "a second message")
	locktest.IsError(t, outer.Err(), rlock.ErrUnlocked, context.Canceled)
	locktest.IsError(t, context.Cause(outer), rlock.ErrUnlocked)
	locktest.IsError(t, l.Check(outer), rlock.ErrUnlocked)
	_, err = l.Lock(outer)
	locktest.IsError(t, err, rlock.ErrUnlocked)
}

// messagesOf subscribes to the channel of the lock "l".
func messagesOf(t testing.TB, rdb *redis.Client) <-chan *redis.Message {
	t.Helper()
	sub := rdb.Subscribe(context.Background(), lockChannel)
	t.Cleanup(func() { _ = sub.Close() })
	_, err := sub.Receive(context.Background())
	locktest.NoError(t, err)
	return sub.Channel()
}

// fieldInRedis returns the hold's field in the lock "l".
func fieldInRedis(t testing.TB, rdb *redis.Client) string {
	t.Helper()
	field := ""
	for f := range rdb.HGetAll(context.Background(), "l").Val() {
		if !strings.HasSuffix(f, "#") {
			if field != "" {
				t.Fatalf("Inv1: two holds: %q and %q", field, f)
			}
			field = f
		}
	}
	return field
}

// Re-entry is by the hold's newest level on the context's chain: contexts derived from the hold's re-enter, and every
// acquiring call does, without a wait.
func TestBehaviourReentryThroughDerivedContexts(t *testing.T) {
	_, l := newLock(t)
	outer := take(t, l, t.Context())
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
		for _, c := range lockCalls {
			inner, err := c.call(l, derived)
			locktest.NoError(t, err)
			wantHolds(t, l, inner, 2)
			innermost, err := c.call(l, inner)
			locktest.NoError(t, err)
			wantHolds(t, l, outer, 3)
			locktest.NoError(t, l.Unlock(innermost))
			locktest.NoError(t, l.Unlock(inner))
			wantHolds(t, l, outer, 1)
		}
	}
	locktest.NoError(t, l.Unlock(outer))
	wantLocked(t, l, false)
}

// Two locks inside each other, by a function that does not know of the outer hold: both are held, each is unlocked by
// its own context, and each one's context ends with its own Unlock.
func TestBehaviourTwoLocks(t *testing.T) {
	rdb := redistest.New(t)
	c := newClient(t, rdb)
	a, b := rlock.NewLock(c, "a"), rlock.NewLock(c, "b")
	outer := take(t, a, t.Context())
	transfer := func(ctx context.Context) {
		inB := take(t, b, ctx)
		inA := take(t, a, inB) // re-enters, though b is in between
		wantHolds(t, a, inA, 2)
		wantHolds(t, b, inA, 1)
		locktest.NoError(t, a.Unlock(inA))
		locktest.NoError(t, b.Check(inB))
		locktest.NoError(t, b.Unlock(inB))
		locktest.IsError(t, inB.Err(), rlock.ErrUnlocked)
	}
	transfer(outer)
	locktest.NoError(t, outer.Err())
	wantHolds(t, a, outer, 1)
	wantLocked(t, b, false)
	locktest.NoError(t, a.Unlock(outer))
	wantLocked(t, a, false)
}

// P11: unlocked in the wrong order, each Unlock releases its own lock; the inner context ends with the outer one, and
// Check still knows that the inner lock is held.
func TestBehaviourTwoLocksInTheWrongOrder(t *testing.T) {
	rdb := redistest.New(t)
	c := newClient(t, rdb)
	a, b := rlock.NewLock(c, "a"), rlock.NewLock(c, "b")
	inA := take(t, a, t.Context())
	inB := take(t, b, inA)
	locktest.NoError(t, a.Unlock(inA))
	wantLocked(t, a, false)
	wantLocked(t, b, true)
	locktest.IsError(t, inB.Err(), rlock.ErrUnlocked, context.Canceled)
	locktest.NoError(t, b.Check(inB))
	locktest.NoError(t, b.Unlock(inB))
	wantLocked(t, b, false)
	locktest.IsError(t, a.Unlock(inA), rlock.ErrNotHeld)
	locktest.IsError(t, b.Unlock(inB), rlock.ErrNotHeld)
}

// The same with two levels of one lock: the count is right at every step.
func TestP11_LevelsInTheWrongOrder(t *testing.T) {
	rdb, l := newLock(t)
	outer := take(t, l, t.Context())
	inner := take(t, l, outer)
	locktest.NoError(t, l.Unlock(outer))
	locktest.Equal(t, "count in Redis", rdb.HGet(t.Context(), "l", fieldInRedis(t, rdb)).Val(), "1")
	locktest.IsError(t, l.Unlock(outer), rlock.ErrNotHeld)
	wantLocked(t, l, true)
	locktest.IsError(t, inner.Err(), rlock.ErrUnlocked, context.Canceled)
	locktest.NoError(t, l.Check(inner))
	locktest.NoError(t, l.Unlock(inner))
	wantLocked(t, l, false)
}

// P4: context.WithoutCancel carries the holder, but not the end of the hold: Check tells, and Lock does not take afresh
// what was lost.
func TestBehaviourWithoutCancel(t *testing.T) {
	rdb, l := newLock(t)
	held := take(t, l, t.Context())
	detached := context.WithoutCancel(held)
	locktest.NoError(t, l.Check(detached))
	wantHolds(t, l, detached, 1)
	freed, err := l.ForceUnlock(t.Context())
	locktest.NoError(t, err)
	locktest.Equal(t, "freed", freed, true)
	locktest.NoError(t, detached.Err())
	locktest.IsError(t, l.Check(detached), rlock.ErrLost)
	wantHolds(t, l, detached, 0)
	for _, c := range lockCalls {
		got, err := c.call(l, detached)
		locktest.IsError(t, err, rlock.ErrLost)
		locktest.IsError(t, l.Unlock(got), rlock.ErrNotHeld)
	}
	locktest.Equal(t, "keys", len(rdb.Keys(t.Context(), "*").Val()), 0)
	locktest.IsError(t, l.Unlock(detached), rlock.ErrLost)
	locktest.IsError(t, l.Unlock(detached), rlock.ErrNotHeld)

	held = take(t, l, t.Context())
	detached = context.WithoutCancel(held)
	locktest.NoError(t, l.Unlock(detached))
	wantLocked(t, l, false)
	locktest.IsError(t, held.Err(), rlock.ErrUnlocked)
	locktest.IsError(t, l.Check(detached), rlock.ErrUnlocked)
}

// Inv1: workers that share a context exclude each other: with a context of NewHolder, and with a hold of another lock.
func TestBehaviourWorkersExclude(t *testing.T) {
	rdb := redistest.New(t)
	c := newClient(t, rdb)
	l := rlock.NewLock(c, "l")
	t.Run("a new holder", func(t *testing.T) { wantExclusion(t, l, rlock.NewHolder(t.Context()), 5) })
	t.Run("another lock", func(t *testing.T) {
		other := rlock.NewLock(c, "other")
		outer := take(t, other, t.Context())
		wantExclusion(t, l, outer, 5)
		locktest.NoError(t, other.Unlock(outer))
	})
	t.Run("no holder", func(t *testing.T) { wantExclusion(t, l, t.Context(), 5) })
	wantLocked(t, l, false)
}

// A goroutine with a holder of its own waits for its parent, and then gets the lock.
func TestBehaviourNewHolderWaits(t *testing.T) {
	rdb, l := newLock(t, rlock.WithPollInterval(time.Hour))
	parent := take(t, l, t.Context())
	_, err := l.TryLock(rlock.NewHolder(parent), 0, 0)
	locktest.IsError(t, err, rlock.ErrNotAcquired)
	locktest.IsError(t, l.Check(rlock.NewHolder(parent)), rlock.ErrNotHeld)
	child := locktest.StartLock(func() (context.Context, error) { return l.Lock(rlock.NewHolder(parent)) })
	waitsForLock(t, rdb)
	locktest.NothingComes(t, child, 10*time.Millisecond, "the child did not wait")
	locktest.NoError(t, l.Unlock(parent))
	got := redistest.Await(t, soon, child, "the child gets the lock")
	locktest.NoError(t, got.Err)
	locktest.NoError(t, got.Ctx.Err()) // it has not ended with its parent's hold
	wantHolds(t, l, got.Ctx, 1)
	wantHolds(t, l, parent, 0)
	locktest.NoError(t, l.Unlock(got.Ctx))
}

// P4: with a holder from NewHolder the returned context may be thrown away.
func TestBehaviourNewHolderKeepsTheHold(t *testing.T) {
	rdb, l := newLock(t)
	ctx := rlock.NewHolder(t.Context())
	locktest.IsError(t, l.Check(ctx), rlock.ErrNotHeld)
	wantHolds(t, l, ctx, 0)
	take(t, l, ctx)
	wantHolds(t, l, ctx, 1)
	locktest.NoError(t, l.Check(ctx))
	locktest.NoError(t, l.Unlock(ctx))
	wantLocked(t, l, false)
	locktest.NoError(t, ctx.Err())

	// A second Unlock touches nothing, whoever has the lock now.
	next := take(t, l, t.Context())
	before := fieldInRedis(t, rdb)
	locktest.IsError(t, l.Unlock(ctx), rlock.ErrNotHeld)
	locktest.Equal(t, "field", fieldInRedis(t, rdb), before)
	locktest.NoError(t, next.Err())
	locktest.NoError(t, l.Unlock(next))

	// And again: the context is as good as new.
	take(t, l, ctx)
	locktest.NoError(t, l.Unlock(ctx))
}

// P11: a second Unlock of an inner level touches nothing of the outer one.
func TestP11_SecondUnlockOfAnInnerLevel(t *testing.T) {
	_, l := newLock(t)
	outer := take(t, l, t.Context())
	inner := take(t, l, outer)
	locktest.NoError(t, l.Unlock(inner))
	locktest.IsError(t, l.Unlock(inner), rlock.ErrNotHeld)
	wantHolds(t, l, outer, 1)
	locktest.NoError(t, outer.Err())
	locktest.NoError(t, l.Unlock(outer))
}

type contextKey string

// The values of the user's contexts are seen through a hold's context and through NewHolder; the deadline through the
// hold's context.
func TestBehaviourValues(t *testing.T) {
	_, l := newLock(t)
	deadline := time.Now().Add(time.Hour)
	below, cancel := context.WithDeadline(context.WithValue(t.Context(), contextKey("below"), 1), deadline)
	defer cancel()
	held := take(t, l, below)
	above := context.WithValue(held, contextKey("above"), 2)
	fresh := rlock.NewHolder(above)
	for _, ctx := range []context.Context{above, fresh} {
		locktest.Equal(t, "value below", ctx.Value(contextKey("below")), any(1))
		locktest.Equal(t, "value above", ctx.Value(contextKey("above")), any(2))
		locktest.Equal(t, "no value", ctx.Value(contextKey("none")), nil)
		d, ok := ctx.Deadline()
		locktest.Equal(t, "deadline", ok && d.Equal(deadline), true)
	}
	locktest.NoError(t, l.Unlock(held))
	locktest.IsError(t, above.Err(), context.Canceled)
	locktest.IsError(t, context.Cause(above), rlock.ErrUnlocked)
	locktest.NoError(t, fresh.Err())
	cancel()
	locktest.IsError(t, fresh.Err(), context.Canceled)
}

// The user's cancellation ends the hold's context, with the user's cause; the lock is held until Unlock, which works
// (Inv7).
func TestBehaviourUserCancels(t *testing.T) {
	_, l := newLock(t)
	why := errors.New("the user's reason")
	for name, wrap := range map[string]func(context.Context) context.Context{
		"plain":      func(ctx context.Context) context.Context { return ctx },
		"value":      func(ctx context.Context) context.Context { return context.WithValue(ctx, contextKey("k"), 1) },
		"new holder": rlock.NewHolder,
	} {
		user, cancel := context.WithCancelCause(t.Context())
		held := take(t, l, wrap(user))
		inner := take(t, l, held)
		cancel(why)
		for _, ctx := range []context.Context{held, inner} {
			<-ctx.Done()
			locktest.IsError(t, ctx.Err(), context.Canceled)
			locktest.IsNotError(t, ctx.Err(), rlock.ErrLost, rlock.ErrUnlocked)
			if cause := context.Cause(ctx); cause != why {
				t.Errorf("%s: cause %v, want the user's", name, cause)
			}
		}
		locktest.IsError(t, l.Check(inner), context.Canceled, why)
		locktest.IsNotError(t, l.Check(inner), rlock.ErrLost) // it is still held
		wantLocked(t, l, true)
		locktest.NoError(t, l.Unlock(inner))
		locktest.NoError(t, l.Unlock(held))
		wantLocked(t, l, false)
	}
}

// A cancellable context above the hold's ends an inner hold of another lock, with its cause.
func TestBehaviourUserCancelsAboveAHold(t *testing.T) {
	rdb, l := newLock(t)
	other := rlock.NewLock(newClient(t, rdb), "other")
	why := errors.New("the user's reason")
	outer := take(t, l, t.Context())
	middle, cancel := context.WithCancelCause(outer)
	inner := take(t, other, middle)
	cancel(why)
	redistest.Await(t, soon, inner.Done(), "the inner context ends")
	locktest.IsError(t, inner.Err(), context.Canceled)
	locktest.IsError(t, context.Cause(inner), why)
	locktest.NoError(t, outer.Err())
	locktest.NoError(t, other.Unlock(inner))
	locktest.NoError(t, l.Unlock(outer))
}

// P5: the errors of a hold's context are ErrLost or ErrUnlocked and context.Canceled in one, its causes as well, and
// what is derived from it ends with it.
func TestBehaviourErrorsOfTheContext(t *testing.T) {
	_, l := newLock(t)
	for _, c := range []struct {
		want error
		end  func(held context.Context)
	}{
		{rlock.ErrUnlocked, func(held context.Context) { locktest.NoError(t, l.Unlock(held)) }},
		{rlock.ErrLost, func(held context.Context) {
			_, err := l.ForceUnlock(t.Context())
			locktest.NoError(t, err)
		}},
	} {
		held := take(t, l, t.Context())
		derived, cancel := context.WithTimeout(held, time.Hour)
		defer cancel()
		after := make(chan struct{})
		context.AfterFunc(held, func() { close(after) })
		c.end(held)
		redistest.Await(t, soon, held.Done(), "the context ends")
		locktest.IsError(t, held.Err(), c.want, context.Canceled)
		locktest.IsError(t, context.Cause(held), c.want, context.Canceled)
		redistest.Await(t, soon, derived.Done(), "the derived context ends")
		locktest.IsError(t, derived.Err(), context.Canceled)
		locktest.IsError(t, context.Cause(derived), c.want)
		redistest.Await(t, soon, after, "AfterFunc runs")
		var e *rlock.Error
		if err := l.Unlock(held); !errors.As(err, &e) {
			t.Errorf("error %v is no *Error", err)
		}
	}
}

// P2: goroutines that share a hold may re-enter it one after the other at any speed; the count in Redis is right when
// they are done.
func TestBehaviourCountAfterManyReentries(t *testing.T) {
	rdb, l := newLock(t)
	held := take(t, l, t.Context())
	ctx := held
	var levels []context.Context
	for range 20 {
		ctx = take(t, l, ctx)
		levels = append(levels, ctx)
	}
	wantHolds(t, l, held, 21)
	var unlocks sync.WaitGroup
	for _, level := range levels { // at once, in any order
		unlocks.Go(func() {
			if err := l.Unlock(level); err != nil {
				t.Errorf("Unlock: %v", err)
			}
		})
	}
	unlocks.Wait()
	wantHolds(t, l, held, 1)
	locktest.Equal(t, "count in Redis", rdb.HGet(t.Context(), "l", fieldInRedis(t, rdb)).Val(), "1")
	locktest.NoError(t, l.Unlock(held))
	locktest.Equal(t, "keys", len(rdb.Keys(t.Context(), "*").Val()), 0)
}

// NewHolder's doc: the new context ends with the context below the outermost hold of ctx. Without a hold that is ctx.
func TestBehaviourNewHolderEndsWithItsContext(t *testing.T) {
	parent, cancel := context.WithCancel(rlock.NewHolder(t.Context()))
	child := rlock.NewHolder(parent)
	cancel()
	locktest.IsError(t, child.Err(), context.Canceled)
}

// The same with a hold in between: below it is the cancelled context, not what that holder was made from.
func TestBehaviourNewHolderEndsWithTheContextBelowTheHold(t *testing.T) {
	_, l := newLock(t)
	parent, cancel := context.WithCancel(rlock.NewHolder(t.Context()))
	held := take(t, l, parent)
	child := rlock.NewHolder(held)
	cancel()
	locktest.IsError(t, child.Err(), context.Canceled)
	locktest.NoError(t, l.Unlock(held))
}

// Inv1: re-entry follows the context: workers that lock the same name with the same context exclude each
// other, also where that context is an outer hold of the same lock.
func TestBehaviourWorkersOnAnOuterHoldOfTheSameLock(t *testing.T) {
	_, l := newLock(t)
	outer := take(t, l, t.Context())
	wantExclusion(t, l, outer, 5)
	wantHolds(t, l, outer, 1)
	locktest.NoError(t, l.Unlock(outer))
}

// wantExclusion has eight workers lock and unlock with one shared context and requires that they exclude each other.
func wantExclusion(t *testing.T, l *rlock.Lock, shared context.Context, rounds int) {
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
		locktest.Equal(t, "sections", int(done.Load()), 8*rounds)
	}
	locktest.Equal(t, "most workers inside at once", most.Load(), 1)
}
