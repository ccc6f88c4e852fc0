package fenced

import (
	"context"
	"time"

	"github.com/fencelock/fencelock/internal/engine"
	"github.com/fencelock/fencelock/rlock"
)

// Lock is a reentrant lock whose acquires give tokens. All acquiring methods take a token, those whose names say so return it. A
// Lock holds no state, and may be copied and used by any number of goroutines.
//
// Re-entry takes a new token too, as in Redisson, and a holder's current token is its latest. A write of the outer
// function after an inner call must therefore show the current one, from Token or TokenFrom, not one that was stored
// before; or the lock is made with WithStableToken.
type Lock engine.Lock

// Option changes how a lock gives its tokens.
type Option func(*engine.Tokens)

// WithStableToken keeps the first token for the whole hold: a re-entry returns the same one, as in Hazelcast's
// FencedLock. For code that stores the token in a variable across nested calls. The first acquire of a hold decides,
// whichever Lock value re-enters it.
func WithStableToken() Option { return func(t *engine.Tokens) { t.Stable = true } }

// WithTokenBlocks is for a lock that many goroutines of one process want for very short sections. An acquire reserves a
// token for each goroutine that waits behind it, and the lock passes from one to the next without waiting for Redis, for
// at most 5 ms; meanwhile Redis is asked for the next tokens, four for each goroutine that waits, as most come back before
// more could be there, and whether the lock is still there. After a bounded number of rounds other clients get their turn
// (see rlock.WithHandoffs). Every hold has a token of its own, and they grow as ever. What is left over when nobody waits
// any more is given back with the release; skipped are those that are left when a goroutine gave up, when a section took
// longer than those 5 ms while others waited, or when an answer came too late. An acquire that nobody waits behind takes one token, as
// without the option.
//
// What is checked less often: within these 5 ms a hold begins without Redis having been asked whether the lock is still
// there. So one can begin up to 5 ms after the lock was forced open or deleted. It learns that as any hold does
// (rlock.Lock.ForceUnlock says how): by a message and a question to Redis a tenth of a second later, not within these 5
// ms. The lease of a hold that began so is up to 5 ms shorter than what was asked for. Its tokens are older than those of whoever has
// taken the lock, so that storage that checks tokens refuses its writes. To Redis, and to other clients, the holds of a
// block are one. All locks of this name in the process should have the option; others end a block.
func WithTokenBlocks() Option { return func(t *engine.Tokens) { t.Blocks = true } }

// WithClockFloor makes tokens survive the loss of the counter: the next one is the larger of the last one + 1 and the
// server's time in microseconds since 1970. Without it tokens begin again at 1 after FLUSHALL, after a failover to a
// replica that had not yet heard of the counter, or when it was evicted, and every guard refuses them until they have
// caught up.
//
// What it needs of the server's clock: while the counter is there, nothing: tokens grow whatever the clock does. When it was
// lost, the clock must not be behind the one that the last tokens came from: keep servers and their replicas on NTP, and set no
// clock back by hand in such a moment. Tokens are then numbers of 16 digits, which JSON and JavaScript still hold
// exactly, and grow in leaps. An acquire costs three commands more inside its script.
//
// All locks of this name should have the option. One without it, and Redisson, takes the last token + 1, which is right
// beside it, but begins at 1 if it is the first one after the loss.
func WithClockFloor() Option { return func(t *engine.Tokens) { t.Floor = true } }

// WithCounterExpiry lets the counter expire so long after its last token, so that a million locks with names of their own,
// one for each order, do not stay in Redis for ever. It includes WithClockFloor: after the expiry only the clock makes
// tokens grow. Choose a time that no server's clock will ever be set back by, such as 24 h; at least a second. Below
// that the first call says so.
func WithCounterExpiry(d time.Duration) Option {
	return func(t *engine.Tokens) {
		t.Floor, t.Expiry = true, d
		if d <= 0 {
			t.Expiry = 1 // too short: the first call says so
		}
	}
}

// NewLock returns the fenced lock of this name. It asks no one: two locks of one name are the same lock. The name is the key of the lock
// in Redis, and any text but the empty one; rlock.NewLock says more of names.
func NewLock(client *rlock.Client, name string, opts ...Option) *Lock {
	tokens := engine.Tokens{Fenced: true}
	for _, opt := range opts {
		if opt != nil {
			opt(&tokens)
		}
	}
	return (*Lock)(engine.NewLock((*engine.Client)(client), name, tokens))
}

func (l *Lock) engine() *engine.Lock { return (*engine.Lock)(l) }

// acquire is an acquiring method with this name.
func (l *Lock) acquire(ctx context.Context, op string, r engine.Request) (context.Context, int64, error) {
	held, token, err := l.engine().Acquire(ctx, r)
	return held, token, l.wrap(op, err)
}

func (l *Lock) do(ctx context.Context, op string, r engine.Request, fn func(context.Context, int64) error) error {
	if fn == nil {
		return l.wrap(op, engine.ErrNothingToDo)
	}
	held, token, err := l.acquire(ctx, op, r)
	if err != nil {
		return err
	}
	return engine.Do(func() error { return fn(held, token) }, func() error { return l.wrap(op, l.engine().Unlock(held)) })
}

func (l *Lock) wrap(op string, err error) error {
	if err == nil {
		return nil
	}
	return &rlock.Error{Op: op, Lock: l.Name(), Err: err}
}

// Name returns the lock's name.
func (l *Lock) Name() string { return l.engine().Name() }

// LockAndGetToken takes the lock, waiting for as long as ctx lives, and returns the token of this acquire. Each is larger than
// all that were given before, but for re-entries WithStableToken, and after a loss of the counter without WithClockFloor. ctx bounds the wait and the hold. The returned context carries the holder: pass it on, so that nested
// calls re-enter, give it to Unlock, and look at its Err, which is ErrLost once the lock is lost. The lease is the watchdog's,
// renewed until Unlock. On an error the returned context is ctx and the token 0, and nothing is held: ErrLost if the holder's own
// hold was lost, ErrClosed, the context's error, or what Redis said; what goes away by itself is ridden out for rlock.WithPatience.
func (l *Lock) LockAndGetToken(ctx context.Context) (context.Context, int64, error) {
	return l.acquire(ctx, "LockAndGetToken", engine.Request{Forever: true})
}

// LockLeaseAndGetToken is LockAndGetToken with a lease that nobody renews: the lock is lost after it if it was not unlocked
// before. The lease is from 10 ms to 100 years, in whole milliseconds; 0 is the watchdog's. A re-entry with a shorter lease than
// the hold has left does not shorten it.
func (l *Lock) LockLeaseAndGetToken(ctx context.Context, lease time.Duration) (context.Context, int64, error) {
	return l.acquire(ctx, "LockLeaseAndGetToken", engine.Request{Forever: true, Lease: lease})
}

// TryLockAndGetToken is LockAndGetToken with a bound on the wait: after it the error is rlock.ErrNotAcquired, if somebody else held
// the lock, or what Redis said, if it did not tell. wait 0 asks once; any other wait is a millisecond or more. lease 0 is the
// watchdog's, otherwise as in LockLeaseAndGetToken. It is Java's tryLockAndGetToken(waitTime, leaseTime, unit).
func (l *Lock) TryLockAndGetToken(ctx context.Context, wait, lease time.Duration) (context.Context, int64, error) {
	return l.acquire(ctx, "TryLockAndGetToken", engine.Request{Wait: wait, Lease: lease})
}

// Lock is LockAndGetToken for code that asks for the token later, with Token or TokenFrom. This acquire takes a token all the same.
func (l *Lock) Lock(ctx context.Context) (context.Context, error) {
	ctx, _, err := l.acquire(ctx, "Lock", engine.Request{Forever: true})
	return ctx, err
}

// LockLease is LockLeaseAndGetToken for code that asks for the token later, with Token or TokenFrom.
func (l *Lock) LockLease(ctx context.Context, lease time.Duration) (context.Context, error) {
	ctx, _, err := l.acquire(ctx, "LockLease", engine.Request{Forever: true, Lease: lease})
	return ctx, err
}

// TryLock is TryLockAndGetToken for code that asks for the token later, with Token or TokenFrom.
func (l *Lock) TryLock(ctx context.Context, wait, lease time.Duration) (context.Context, error) {
	ctx, _, err := l.acquire(ctx, "TryLock", engine.Request{Wait: wait, Lease: lease})
	return ctx, err
}

// Do runs fn while it holds the lock, which it takes as LockAndGetToken does, with that context and token. The error says all there
// is to say: fn's own, joined with Unlock's, which is ErrLost where the lock was lost, also if fn returned nil. A panic in fn
// unlocks and goes on.
func (l *Lock) Do(ctx context.Context, fn func(ctx context.Context, token int64) error) error {
	return l.do(ctx, "Do", engine.Request{Forever: true}, fn)
}

// TryDo is Do that takes the lock as TryLockAndGetToken does; rlock.ErrNotAcquired means that fn did not run.
func (l *Lock) TryDo(ctx context.Context, wait, lease time.Duration, fn func(ctx context.Context, token int64) error) error {
	return l.do(ctx, "TryDo", engine.Request{Wait: wait, Lease: lease}, fn)
}

// Unlock releases ctx's own level of the hold, and ends the context that its acquire returned, with ErrUnlocked. With a context that
// carries the holder but no level of this lock it releases the holder's newest level. An inner Unlock lowers the hold count and keeps the
// lease; the last one frees the lock and wakes its waiters.
//
// Unlock works with a context that has ended, and takes no longer than rlock.WithUnlockTimeout or the rest of the lease. Where Redis
// does not answer it returns an error, and the release is sent again in the background. ErrLost: the lock had been lost before, so
// that what was done under it may have met another holder's work. ErrNotHeld: ctx has nothing to unlock.
func (l *Lock) Unlock(ctx context.Context) error { return l.wrap("Unlock", l.engine().Unlock(ctx)) }

// Check tells, without asking Redis, whether the hold that ctx belongs to can be trusted now: nil, or ErrLost, ErrUnlocked,
// ErrNotHeld, ErrClosed, or the error of the context that the lock was taken with, once that has ended. Between a look at it
// and a write lies a gap that only storage can close which checks the token.
func (l *Lock) Check(ctx context.Context) error { return l.wrap("Check", l.engine().Check(ctx)) }

// ForceUnlock releases the hold of whoever has the lock, and wakes the waiters. It returns true when it has released one, and false when it
// saw the lock free. The former holder's context ends with ErrLost, as rlock.Lock.ForceUnlock says when; the next acquire has a
// larger token than the one that was forced out. Use it to clean up by hand: the former holder may be in the middle of its work.
func (l *Lock) ForceUnlock(ctx context.Context) (bool, error) {
	freed, err := l.engine().ForceUnlock(ctx)
	return freed, l.wrap("ForceUnlock", err)
}

// IsLocked asks Redis whether anybody holds the lock.
func (l *Lock) IsLocked(ctx context.Context) (bool, error) {
	is, err := l.engine().IsLocked(ctx)
	return is, l.wrap("IsLocked", err)
}

// IsHeld asks Redis whether ctx's holder has the lock, if this client knows of such a hold.
func (l *Lock) IsHeld(ctx context.Context) (bool, error) {
	is, err := l.engine().IsHeld(ctx)
	return is, l.wrap("IsHeld", err)
}

// HoldCount asks Redis how often ctx's holder has acquired the lock without unlocking it; 0 if it does not hold it.
func (l *Lock) HoldCount(ctx context.Context) (int, error) {
	count, err := l.engine().HoldCount(ctx)
	return count, l.wrap("HoldCount", err)
}

// Remaining tells, without asking Redis, for how long the hold that ctx belongs to is good if no renewal succeeds from now on: after
// that its context ends with ErrLost. Use it before a step of known length that must not outlast the lock. The errors are those
// of Check.
func (l *Lock) Remaining(ctx context.Context) (time.Duration, error) {
	left, err := l.engine().Remaining(ctx)
	return left, l.wrap("Remaining", err)
}

// RemainTTL asks Redis for how long the lock stays taken if its lease is not renewed, in whole milliseconds. time.Duration(-2) means
// that nobody holds the lock, time.Duration(-1) that its key does not expire.
func (l *Lock) RemainTTL(ctx context.Context) (time.Duration, error) {
	ttl, err := l.engine().RemainTTL(ctx)
	return ttl, l.wrap("RemainTTL", err)
}
