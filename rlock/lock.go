package rlock

import (
	"context"
	"time"

	"github.com/fencelock/fencelock/internal/engine"
)

// Lock is a reentrant lock without tokens. It is a name and a client, holds no state, and may be copied and used by any
// number of goroutines; who holds it is in the contexts. For writes that must not happen after the lock was lost, use
// fenced.Lock and check its tokens.
//
// Do not use a Lock and a fenced.Lock of the same name side by side: an acquire of this one takes no token, so that the
// writes of a fenced holder that was paused are not refused after it.
type Lock struct{ lock *engine.Lock }

// NewLock returns the lock of this name. It asks no one: two locks of one name are the same lock. The name is the key of
// the lock in Redis, and any text but the empty one; in a cluster it must hash with its counter's name, which names with
// unpaired or empty braces do not (the first call says so). Where the key holds something else the calls that ask Redis
// return its WRONGTYPE error, also where that is a hash with a field that is of no hold, as Redisson's RReadWriteLock has
// it.
func NewLock(client *Client, name string) *Lock {
	return &Lock{engine.NewLock(client.engine(), name, engine.LockOptions{})}
}

// engine is what is in the lock; nil for a nil one, which its methods refuse.
func (l *Lock) engine() *engine.Lock {
	if l == nil {
		return nil
	}
	return l.lock
}

// Name returns the lock's name, as NewLock was given it. It asks nobody; the name of a nil Lock is "".
func (l *Lock) Name() string { return l.engine().Name() }

// Lock takes the lock, waiting for as long as ctx lives. ctx bounds the wait and the hold: when it ends, so does the
// returned context, and the lease is not renewed any more. To bound only the wait, use TryLock.
//
// The returned context carries the holder: pass it on, so that nested calls re-enter, and give it to Unlock. Its Err
// and Done tell when the lock is lost: before its lease can have run out in Redis, or as soon as it is found to have
// been forced open; context.Cause then is ErrLost. Compare with errors.Is: its Err is ErrLost or ErrUnlocked as well as
// context.Canceled. A context derived from it learns of a lease that ran out while the process stood still only when the
// watchdog has run; Check tells at once. Between a look at the context and a write lies a gap that no lock can close, only
// storage that checks the token: see fenced.Lock.
//
// The lease is the watchdog's: renewed until Unlock. A call whose ctx carries a hold of this lock re-enters it, if the
// hold's newest level is on ctx's chain; otherwise it waits.
//
// On an error nothing is held, and the returned context has the values and the end of ctx: Unlock with it returns ErrNotHeld, also where ctx
// carries a hold of this lock, and a nested call re-enters that hold. The error is ErrLost if the holder's own hold of this lock
// was lost, ErrUnlocked if ctx is that of a level that was unlocked, ErrUnconfirmed with WithReplicas or WithFsync,
// ErrClosed, the context's error, or what Redis said. Errors of Redis that go away by themselves are ridden out for
// WithPatience. What may have reached Redis without an answer is released in the background.
func (l *Lock) Lock(ctx context.Context) (context.Context, error) {
	return l.acquire(ctx, "Lock", engine.Request{Forever: true})
}

// LockLease takes the lock as Lock does, with a lease of the caller's, which nobody renews: the lock is lost after it if it was not
// unlocked before. The lease is from 10 ms to 100 years, in whole milliseconds; 0 is the watchdog's. A re-entry with a shorter lease than
// the hold has left does not shorten it. The errors, and what happens while Redis is away, are those of Lock.
func (l *Lock) LockLease(ctx context.Context, lease time.Duration) (context.Context, error) {
	return l.acquire(ctx, "LockLease", engine.Request{Forever: true, Lease: lease})
}

// TryLock takes the lock if it comes free within wait: after the wait the error is ErrNotAcquired, if somebody else held the lock, or
// what Redis said, if it did not tell. wait 0 asks once, and takes a second at most: a connection that fails is tried again for
// so long, and an answer that does not come is waited for so long, with context.DeadlineExceeded then. Any
// other wait is 1 ms or more: a bare number, as in Java, is nanoseconds in Go, and is refused. lease 0 is the watchdog's,
// as in Lock, otherwise as in LockLease. ctx bounds the wait and the hold, and the returned context is as in Lock, also on an error.
// The other errors are those of Lock.
func (l *Lock) TryLock(ctx context.Context, wait, lease time.Duration) (context.Context, error) {
	return l.acquire(ctx, "TryLock", engine.Request{Wait: wait, Lease: lease})
}

// acquire is an acquiring method with this name.
func (l *Lock) acquire(ctx context.Context, op string, r engine.Request) (context.Context, error) {
	held, _, err := l.engine().Acquire(ctx, r)
	return held, l.wrap(op, err)
}

// Do runs fn while it holds the lock, which it takes as Lock does: for the holder of ctx, which bounds the hold too. With
// Wait and Lease it takes the lock as TryLock does; fn's context is the one that Lock would return. The error says all
// there is to say. It is that of the acquire, such as ErrNotAcquired after Wait: then fn did not run. Otherwise it is fn's
// own, unwrapped, joined with Unlock's, which is ErrLost where the lock was lost, also if fn returned nil. A nil fn is an
// error. A panic in fn unlocks and goes on.
func (l *Lock) Do(ctx context.Context, fn func(ctx context.Context) error, opts ...AcquireOption) error {
	if fn == nil {
		return l.wrap("Do", engine.ErrNothingToDo)
	}
	r, err := engine.MakeRequest(opts)
	if err != nil {
		return l.wrap("Do", err)
	}
	held, err := l.acquire(ctx, "Do", r)
	if err != nil {
		return err
	}
	return engine.Do(func() error { return fn(held) }, func() error { return l.wrap("Do", l.engine().Unlock(held)) })
}

// Unlock releases ctx's own level of the hold; with a context that carries the holder but no level of this lock (from
// NewHolder), the holder's newest. The context that the level's acquire returned ends, with ErrUnlocked. An inner Unlock
// lowers the hold count and keeps the lease; the last one frees the lock and wakes its waiters.
//
// Unlock works with a context that has ended, and takes no longer than WithUnlockTimeout or the rest of the lease. When
// Redis does not answer it returns an error, and the release is sent again in the background; the caller's level is over
// in any case. ErrLost: the lock had been lost, so that what was done under it may have met another holder's work.
// ErrNotHeld: ctx has nothing to unlock, or its level was unlocked before; nothing happened.
func (l *Lock) Unlock(ctx context.Context) error { return l.wrap("Unlock", l.engine().Unlock(ctx)) }

// Check tells, without asking Redis, whether the hold that ctx belongs to can be trusted now: nil, or ErrLost,
// ErrUnlocked (ctx's level was unlocked), ErrNotHeld (ctx has no hold of this lock), ErrClosed, or the error and the cause
// of the context that the lock was taken with, once that has ended: it bounds the hold, whose lease it no longer renews. The
// lock is then still taken, until its Unlock or the end of the lease, and nobody else's: the error is not ErrLost. A
// function that takes the lock for its caller must not end that context (defer cancel()); what bounds the wait is TryLock.
//
// Check goes by ctx's values and the clocks, so that it also tells the truth where context.WithoutCancel has cut ctx off
// from the loss. Where an outer level or lock was unlocked first, ctx has ended, as contexts do, and Check returns nil: the lock is held, and
// renewed, until the level's own Unlock.
func (l *Lock) Check(ctx context.Context) error { return l.wrap("Check", l.engine().Check(ctx)) }

// ForceUnlock releases the hold of whoever has the lock, and wakes the waiters. It returns true when it has released one,
// and false when it saw the lock free. Use it to clean up by hand: the former holder may be in the middle of its work.
//
// It means the lock, not one holder. A hold that is unlocked or handed on between the look at it and the release is not
// released; ForceUnlock then looks again, and releases the hold that it sees next. It goes on until it has released one,
// sees the lock free, or WithPatience or ctx ends. The error then says how often the lock was handed on. ForceUnlock
// releases one hold and never one that came after it: a release that got no answer counts when Redis no longer has that
// hold. After another error nobody knows whether the hold was released.
//
// The former holder's context ends with ErrLost. In this client it does so at once, also where the call that took the lock
// has not returned yet. A hold of another Go client that is older than a second hears a message, and asks Redis a tenth of
// a second later; a younger one asks when it is a second old. A hold with a WithLease of 3 s or less asks with its
// renewals only, every third of the lease. A client listens so for 1,000 holds that last, if its Redis user may subscribe.
// Beyond that a hold finds out by its next renewal, within a third of the lease. One with an explicit lease is never
// renewed: it finds out by a nested acquire or an Unlock, otherwise its context ends with the lease.
func (l *Lock) ForceUnlock(ctx context.Context) (bool, error) {
	freed, err := l.engine().ForceUnlock(ctx)
	return freed, l.wrap("ForceUnlock", err)
}

// IsLocked asks Redis whether anybody holds the lock. The answer may be old when it comes: use it to show, not to decide. While Redis is
// away it asks again for WithPatience, 10 s by default, and returns false with what Redis said. The error is ErrUnlocked,
// ErrLost or ErrClosed for the context of a hold that is over, and the context's own for another one that has ended.
func (l *Lock) IsLocked(ctx context.Context) (bool, error) {
	is, err := l.engine().IsLocked(ctx)
	return is, l.wrap("IsLocked", err)
}

// IsHeld asks Redis whether ctx's holder has the lock. For a context without a hold that this client knows of the answer is false, and Redis
// is not asked. So it is after the holder's last Unlock: the answer is false, without an error. For the context of a hold that was lost it is
// false with ErrLost, until that is unlocked. Check tells more, and asks nobody. While Redis is away IsHeld asks again for WithPatience, and
// returns false with what Redis said; the other errors are those of IsLocked.
func (l *Lock) IsHeld(ctx context.Context) (bool, error) {
	is, err := l.engine().IsHeld(ctx)
	return is, l.wrap("IsHeld", err)
}

// HoldCount asks Redis how often ctx's holder has acquired the lock without unlocking it: 1 for a hold without re-entries, 0 if the holder has
// not got the lock. For a context without a hold that this client knows of the answer is 0, and Redis is not asked. So it is after the holder's
// last Unlock: 0, without an error. For the context of a hold that was lost it is 0 with ErrLost, until that is unlocked. While Redis is away
// HoldCount asks again for WithPatience, and returns 0 with what Redis said; the other errors are those of IsLocked.
func (l *Lock) HoldCount(ctx context.Context) (int, error) {
	count, err := l.engine().HoldCount(ctx)
	return count, l.wrap("HoldCount", err)
}

// Remaining tells, without asking Redis, for how long the hold that ctx belongs to is good if no renewal succeeds from now on: after
// that its context ends with ErrLost. Use it before a step of known length that must not outlast the lock. The errors are those
// of Check, with a duration of 0.
func (l *Lock) Remaining(ctx context.Context) (time.Duration, error) {
	left, err := l.engine().Remaining(ctx)
	return left, l.wrap("Remaining", err)
}

// TTL asks Redis for how long the lock stays taken if its lease is not renewed, whoever holds it, in whole milliseconds, 100 years at
// most. As go-redis has it, time.Duration(-2) means that nobody holds the lock, time.Duration(-1) that its key does not expire. While Redis is
// away it asks again for WithPatience, and returns 0 with what Redis said; the errors are those of IsLocked.
func (l *Lock) TTL(ctx context.Context) (time.Duration, error) {
	ttl, err := l.engine().TTL(ctx)
	return ttl, l.wrap("TTL", err)
}

func (l *Lock) wrap(op string, err error) error { return wrap(op, l.engine(), err) }

// wrap is the error of a method of the lock; nil for none.
func wrap(op string, l *engine.Lock, err error) error {
	if err == nil {
		return nil
	}
	return &Error{op, l.Name(), err}
}
