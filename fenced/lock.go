package fenced

import (
	"context"
	"time"

	"github.com/fencelock/fencelock/internal/engine"
	"github.com/fencelock/fencelock/rlock"
)

// Lock is a reentrant lock whose acquires give tokens. A Lock holds no state, and may be copied and used by any number of goroutines.
//
// Re-entry takes a new token too, as in Redisson, and a holder's current token is its latest. A write of the outer
// function after an inner call must therefore show the current one, from Token or TokenFrom, not one that was stored
// before; or the lock is made with WithStableToken.
type Lock struct{ lock *engine.Lock }

// Option changes how a lock gives its tokens.
type Option func(*options)

type options = engine.LockOptions

// WithStableToken keeps the first token for the whole hold: a re-entry returns the same one, as in Hazelcast's
// FencedLock. For code that stores the token in a variable across nested calls. The first acquire of a hold decides,
// whichever Lock value re-enters it.
func WithStableToken() Option { return func(o *options) { o.Stable = true } }

// WithClockFloor makes tokens survive the loss of the counter: the next one is the larger of the last one + 1 and the
// server's time in microseconds since 1970. Without it tokens begin again at 1 after FLUSHALL, after a failover to a
// replica that had not yet heard of the counter, or when it was evicted, and every guard refuses them until they have
// caught up.
//
// What it needs of the server's clock: while the counter is there, nothing: tokens grow whatever the clock does. When it was
// lost, the clock must not be behind the one that the last tokens came from: keep servers and their replicas on NTP, and set no
// clock back by hand in such a moment. Tokens are then numbers of 16 digits, which JSON and JavaScript still hold
// exactly, and grow in leaps. An acquire costs three commands more inside its script;
// one to read four, or, beside others that read, one.
//
// All locks of this name should have the option. One without it, and Redisson, takes the last token + 1, which is right
// beside it, but begins at 1 if it is the first one after the loss.
func WithClockFloor() Option { return func(o *options) { o.Floor = true } }

// WithCounterExpiry lets the counter expire so long after the last token that a lock with this option took, so that a
// million locks with names of their own, one for each order, do not stay in Redis for ever. It includes WithClockFloor: after
// the expiry only the clock makes tokens grow. Choose a time that no server's clock will ever be set back by, such as 24 h; at
// least a second. Below that the first call says so.
//
// The tokens of Redisson, and of locks without the option, do not begin the time anew: the counter expires while they are
// taken, and theirs begin again at 1. So all locks of the name need the option, and a name that Redisson locks too cannot
// have it.
func WithCounterExpiry(d time.Duration) Option {
	return func(o *options) {
		o.Floor, o.Expiry = true, d
		if d <= 0 {
			o.Expiry = 1 // too short: the first call says so
		}
	}
}

// NewLock returns the fenced lock of this name. It asks no one: two locks of one name are the same lock. The name is the key of the lock
// in Redis, and any text but the empty one; rlock.NewLock says more of names.
func NewLock(client *rlock.Client, name string, opts ...Option) *Lock {
	return &Lock{engine.NewLock(engine.ClientOf(client), name, optionsOf(opts))}
}

// optionsOf is how locks with these options give tokens.
func optionsOf(opts []Option) engine.LockOptions {
	options := engine.LockOptions{Fenced: true}
	for _, opt := range opts {
		if opt != nil {
			opt(&options)
		}
	}
	return options
}

// engine is what is in the lock; nil for a nil one, which its methods refuse.
func (l *Lock) engine() *engine.Lock {
	if l == nil {
		return nil
	}
	return l.lock
}

func init() { engine.LockOf = func(lock any) *engine.Lock { return lock.(*Lock).engine() } }

// acquire is an acquiring method with this name.
func (l *Lock) acquire(ctx context.Context, op string, r engine.Request) (context.Context, int64, error) {
	held, token, err := l.engine().Acquire(ctx, r)
	return held, token, l.wrap(op, err)
}

func (l *Lock) wrap(op string, err error) error { return wrap(op, l.engine(), err) }

// wrap is the error of a method of the lock; nil for none.
func wrap(op string, l *engine.Lock, err error) error {
	if err == nil {
		return nil
	}
	return &rlock.Error{Op: op, Lock: l.Name(), Err: err}
}

// Name returns the lock's name, as NewLock was given it. It asks nobody; the name of a nil Lock is "".
func (l *Lock) Name() string { return l.engine().Name() }

// LockAndGetToken takes the lock, waiting for as long as ctx lives, and returns the token of this acquire. A token is larger than all
// that were given before, but for re-entries WithStableToken, and after a loss of the counter without WithClockFloor.
//
// ctx bounds the wait and the hold: when ctx ends, so does the returned context, and the lease is not renewed any more. To bound the
// wait alone use TryLockAndGetToken. The returned context carries the holder: pass it on, so that nested calls re-enter, and give it to
// Unlock. Its Err is rlock.ErrLost as soon as the lock is lost, before the lease can have run out in Redis. The lease is that of
// rlock.WithLease, 30 s by default, and is renewed until Unlock.
//
// While Redis is away the call tries again for rlock.WithPatience, 10 s by default, and then returns what Redis or the network said. A
// command without an answer may have taken the lock: it is repeated in a form that counts once, or released in the background.
//
// On an error nothing is held, the token is 0, and the returned context has the values and the end of ctx: Unlock with it returns
// rlock.ErrNotHeld, also where ctx carries a hold of this lock, and a nested call re-enters that hold. The error is an *rlock.Error that is, by errors.Is,
// rlock.ErrLost (the holder's own hold of this lock was lost), rlock.ErrUnlocked (ctx is that of a level that was unlocked),
// rlock.ErrUnconfirmed (rlock.WithReplicas, rlock.WithFsync), rlock.ErrClosed, the context's error, or Redis's.
func (l *Lock) LockAndGetToken(ctx context.Context) (context.Context, int64, error) {
	return l.acquire(ctx, "LockAndGetToken", engine.Request{Forever: true})
}

// LockLeaseAndGetToken takes the lock with a lease of the caller's, which nobody renews, and returns the token of this acquire: the lock
// is lost after the lease if it was not unlocked before. The lease is from 10 ms to 100 years, in whole milliseconds; 0 is the watchdog's,
// as in LockAndGetToken, and any other value is an error. A re-entry with a shorter lease than the hold has left does not shorten it.
//
// The wait, the returned context, the errors, and what happens while Redis is away are those of LockAndGetToken.
func (l *Lock) LockLeaseAndGetToken(ctx context.Context, lease time.Duration) (context.Context, int64, error) {
	return l.acquire(ctx, "LockLeaseAndGetToken", engine.Request{Forever: true, Lease: lease})
}

// TryLockAndGetToken takes the lock if it comes free within wait, and returns the token of this acquire. wait 0 asks once; any other wait
// is a millisecond or more, as a bare number, which is nanoseconds, is refused. lease 0 is the watchdog's, otherwise the lease is as in
// LockLeaseAndGetToken. ctx bounds the wait and the hold. It is Java's tryLockAndGetToken(waitTime, leaseTime, unit).
//
// After the wait the error is rlock.ErrNotAcquired if somebody else held the lock, and what Redis said if Redis did not tell. While
// Redis is away the call tries again for as long as wait, and rlock.WithPatience at most; with wait 0 it tries, and waits for an answer,
// for a second at most. Where no answer came the error is context.DeadlineExceeded. The other errors, and what is returned with one, are
// those of LockAndGetToken.
func (l *Lock) TryLockAndGetToken(ctx context.Context, wait, lease time.Duration) (context.Context, int64, error) {
	return l.acquire(ctx, "TryLockAndGetToken", engine.Request{Wait: wait, Lease: lease})
}

// Do takes the lock as LockAndGetToken does, for the holder of ctx, which bounds the hold too; runs fn with that context and token; and unlocks. With
// rlock.Wait and rlock.Lease it takes the lock as TryLockAndGetToken does. A panic in fn unlocks and goes on.
//
// The error says all there is to say: that of the acquire, such as rlock.ErrNotAcquired after rlock.Wait, in which case fn did not run; otherwise
// fn's own, joined with Unlock's, which is rlock.ErrLost where the lock was lost, also if fn returned nil. When Redis goes away while fn runs,
// fn's context ends in time, and the release is sent again in the background. A nil fn is an error.
func (l *Lock) Do(ctx context.Context, fn func(ctx context.Context, token int64) error, opts ...rlock.AcquireOption) error {
	if fn == nil {
		return l.wrap("Do", engine.ErrNothingToDo)
	}
	r, err := engine.MakeRequest(opts)
	if err != nil {
		return l.wrap("Do", err)
	}
	held, token, err := l.acquire(ctx, "Do", r)
	if err != nil {
		return err
	}
	return engine.Do(func() error { return fn(held, token) }, func() error { return l.wrap("Do", l.engine().Unlock(held)) })
}

// Unlock releases ctx's own level of the hold, and ends the context that its acquire returned, with rlock.ErrUnlocked. With a context that
// carries the holder but no level of this lock it releases the holder's newest level. An inner Unlock lowers the hold count and keeps the
// lease; the last one frees the lock and wakes its waiters.
//
// Unlock works with a context that has ended. While Redis is away it takes no longer than rlock.WithUnlockTimeout, 5 s by default, or the
// rest of the lease; then it returns an error, and the release is sent again in the background. The level is over in any case.
//
// rlock.ErrLost: the lock had been lost before, so that what was done under it may have met another holder's work. rlock.ErrNotHeld: ctx has
// nothing to unlock, or its level was unlocked before, and nothing happened.
func (l *Lock) Unlock(ctx context.Context) error { return l.wrap("Unlock", l.engine().Unlock(ctx)) }

// Check tells, without asking Redis, whether the hold that ctx belongs to can be trusted now, by the clocks and by what the client has
// heard: it needs no Redis, and is right while Redis is away, as a hold that cannot be renewed ends in time. Between a look at it
// and a write lies a gap that only storage can close which checks the token.
//
// It returns nil, rlock.ErrLost, rlock.ErrUnlocked (ctx's level was unlocked), rlock.ErrNotHeld (ctx has no hold of this lock),
// rlock.ErrClosed, or the error of the context that the lock was taken with, once that has ended: the lock is then still taken, until its
// Unlock or the end of the lease. Where an outer level or lock was unlocked first, ctx has ended, as contexts do, and Check returns nil: the
// lock is held, and renewed, until the level's own Unlock.
func (l *Lock) Check(ctx context.Context) error { return l.wrap("Check", l.engine().Check(ctx)) }

// ForceUnlock releases the hold of whoever has the lock, and wakes the waiters. It returns true when it has released one, and false when it
// saw the lock free. Use it to clean up by hand: the former holder may be in the middle of its work.
//
// The former holder's context ends with rlock.ErrLost: at once in this client, in another Go client when that hears of it or asks Redis, a
// third of the lease later at most, and for a hold with an explicit lease by its end. The next acquire has a larger token than the one
// that was forced out, so that a guard refuses what the former holder still writes.
//
// A hold that is unlocked or handed on between the look at it and the release is not released: ForceUnlock looks again, for
// rlock.WithPatience at most. So long it also tries again while Redis is away; it then returns what Redis said, and nobody knows
// whether the hold was released.
func (l *Lock) ForceUnlock(ctx context.Context) (bool, error) {
	freed, err := l.engine().ForceUnlock(ctx)
	return freed, l.wrap("ForceUnlock", err)
}

// IsLocked asks Redis whether anybody holds the lock. The answer may be old when it comes: use it to show, not to decide. While Redis is
// away it asks again for rlock.WithPatience, 10 s by default, and returns false with what Redis said. The error is rlock.ErrUnlocked,
// rlock.ErrLost or rlock.ErrClosed for the context of a hold that is over, and the context's own for another one that has ended.
func (l *Lock) IsLocked(ctx context.Context) (bool, error) {
	is, err := l.engine().IsLocked(ctx)
	return is, l.wrap("IsLocked", err)
}

// IsHeld asks Redis whether ctx's holder has the lock. For a context without a hold that this client knows of the answer is false, and Redis
// is not asked. So it is after the holder's last Unlock: the answer is false, without an error. For the context of a hold that was lost it is
// false with rlock.ErrLost, until that is unlocked. Check tells more, and asks nobody. While Redis is away IsHeld asks again for
// rlock.WithPatience, and returns false with what Redis said; the other errors are those of IsLocked.
func (l *Lock) IsHeld(ctx context.Context) (bool, error) {
	is, err := l.engine().IsHeld(ctx)
	return is, l.wrap("IsHeld", err)
}

// HoldCount asks Redis how often ctx's holder has acquired the lock without unlocking it: 1 for a hold without re-entries, 0 if the holder has
// not got the lock. For a context without a hold that this client knows of the answer is 0, and Redis is not asked. So it is after the holder's
// last Unlock: 0, without an error. For the context of a hold that was lost it is 0 with rlock.ErrLost, until that is unlocked. While Redis is
// away HoldCount asks again for rlock.WithPatience, and returns 0 with what Redis said; the other errors are those of IsLocked.
func (l *Lock) HoldCount(ctx context.Context) (int, error) {
	count, err := l.engine().HoldCount(ctx)
	return count, l.wrap("HoldCount", err)
}

// Remaining tells, without asking Redis, for how long the hold that ctx belongs to is good if no renewal succeeds from now on: after
// that its context ends with rlock.ErrLost. Use it before a step of known length that must not outlast the lock. The errors are those
// of Check, with a duration of 0.
func (l *Lock) Remaining(ctx context.Context) (time.Duration, error) {
	left, err := l.engine().Remaining(ctx)
	return left, l.wrap("Remaining", err)
}

// TTL asks Redis for how long the lock stays taken if its lease is not renewed, whoever holds it, in whole milliseconds, 100 years at most.
// time.Duration(-2) means that nobody holds the lock, time.Duration(-1) that its key does not expire. While Redis is away it asks again for
// rlock.WithPatience, and returns 0 with what Redis said; the errors are those of IsLocked.
func (l *Lock) TTL(ctx context.Context) (time.Duration, error) {
	ttl, err := l.engine().TTL(ctx)
	return ttl, l.wrap("TTL", err)
}
