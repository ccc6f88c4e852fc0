package fenced

import (
	"context"
	"time"

	"github.com/fencelock/fencelock/internal/seam"
	"github.com/fencelock/fencelock/rlock"
)

// Lock is a reentrant lock whose acquires give tokens. It has the methods of rlock.Lock, which say what they do there;
// all of them take a token, those whose names say so return it. It holds no state, and may be copied and used by any
// number of goroutines.
//
// Re-entry takes a new token too, as in Redisson, and a holder's current token is its latest. A write of the outer
// function after an inner call must therefore show the current one, from Token or TokenFrom, not one that was stored
// before; or the lock is made with WithStableToken.
type Lock struct {
	lock   *rlock.Lock
	engine seam.Lock
}

// Option changes how a lock gives its tokens.
type Option func(*options)

type options struct{ tokens seam.Tokens }

// WithStableToken keeps the first token for the whole hold: a re-entry returns the same one, as in Hazelcast's
// FencedLock. For code that stores the token in a variable across nested calls. The first acquire of a hold decides,
// whichever Lock value re-enters it.
func WithStableToken() Option { return func(o *options) { o.tokens.Stable = true } }

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
func WithTokenBlocks() Option { return func(o *options) { o.tokens.Blocks = true } }

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
func WithClockFloor() Option { return func(o *options) { o.tokens.Floor = true } }

// WithCounterExpiry lets the counter expire so long after its last token, so that a million locks with names of their own,
// one for each order, do not stay in Redis for ever. It includes WithClockFloor: after the expiry only the clock makes
// tokens grow. Choose a time that no server's clock will ever be set back by, such as 24 h; at least a second. Below
// that the first call says so.
func WithCounterExpiry(d time.Duration) Option {
	return func(o *options) {
		o.tokens.Floor, o.tokens.Expiry = true, d
		if d <= 0 {
			o.tokens.Expiry = 1 // too short: the first call says so
		}
	}
}

// NewLock returns the fenced lock of this name; see rlock.NewLock. It asks no one.
func NewLock(client *rlock.Client, name string, opts ...Option) *Lock {
	var o options
	for _, opt := range opts {
		if opt != nil {
			opt(&o)
		}
	}
	lock := rlock.NewLock(client, name)
	return &Lock{lock, seam.New(lock, o.tokens)}
}

// plain is what the lock is without its tokens. Of a lock that NewLock did not make it is nil, whose methods say so.
func (l *Lock) plain() *rlock.Lock {
	if l == nil {
		return nil
	}
	return l.lock
}

// tokens is what gives the tokens.
func (l *Lock) tokens() seam.Lock {
	if l == nil || l.engine == nil {
		return seam.New((*rlock.Lock)(nil), seam.Tokens{})
	}
	return l.engine
}

// Name returns the lock's name.
func (l *Lock) Name() string { return l.plain().Name() }

// LockAndGetToken is Lock, and returns the token of this acquire. ctx bounds the wait and the hold.
func (l *Lock) LockAndGetToken(ctx context.Context) (context.Context, int64, error) {
	return l.tokens().Acquire(ctx, seam.Call{Op: "LockAndGetToken", Forever: true})
}

// LockLeaseAndGetToken is LockLease, and returns the token of this acquire. ctx bounds the wait and the hold.
func (l *Lock) LockLeaseAndGetToken(ctx context.Context, lease time.Duration) (context.Context, int64, error) {
	return l.tokens().Acquire(ctx, seam.Call{Op: "LockLeaseAndGetToken", Forever: true, Lease: lease})
}

// TryLockAndGetToken is TryLock, and returns the token of this acquire. ctx bounds the wait and the hold.
func (l *Lock) TryLockAndGetToken(ctx context.Context, wait, lease time.Duration) (context.Context, int64, error) {
	return l.tokens().Acquire(ctx, seam.Call{Op: "TryLockAndGetToken", Wait: wait, Lease: lease})
}

// Lock is rlock.Lock.Lock. ctx bounds the wait and the hold.
func (l *Lock) Lock(ctx context.Context) (context.Context, error) {
	ctx, _, err := l.tokens().Acquire(ctx, seam.Call{Op: "Lock", Forever: true})
	return ctx, err
}

// LockLease is rlock.Lock.LockLease. ctx bounds the wait and the hold.
func (l *Lock) LockLease(ctx context.Context, lease time.Duration) (context.Context, error) {
	ctx, _, err := l.tokens().Acquire(ctx, seam.Call{Op: "LockLease", Forever: true, Lease: lease})
	return ctx, err
}

// TryLock is rlock.Lock.TryLock. ctx bounds the wait and the hold.
func (l *Lock) TryLock(ctx context.Context, wait, lease time.Duration) (context.Context, error) {
	ctx, _, err := l.tokens().Acquire(ctx, seam.Call{Op: "TryLock", Wait: wait, Lease: lease})
	return ctx, err
}

// Do runs fn with the lock held and its token; see rlock.Lock.Do.
func (l *Lock) Do(ctx context.Context, fn func(ctx context.Context, token int64) error) error {
	return l.tokens().Run(ctx, seam.Call{Op: "Do", Forever: true}, fn)
}

// TryDo runs fn with the lock held and its token; see rlock.Lock.TryDo.
func (l *Lock) TryDo(ctx context.Context, wait, lease time.Duration, fn func(ctx context.Context, token int64) error) error {
	return l.tokens().Run(ctx, seam.Call{Op: "TryDo", Wait: wait, Lease: lease}, fn)
}

// Unlock is rlock.Lock.Unlock.
func (l *Lock) Unlock(ctx context.Context) error { return l.plain().Unlock(ctx) }

// Check is rlock.Lock.Check.
func (l *Lock) Check(ctx context.Context) error { return l.plain().Check(ctx) }

// ForceUnlock is rlock.Lock.ForceUnlock. The next acquire has a larger token than the one that was forced out.
func (l *Lock) ForceUnlock(ctx context.Context) (bool, error) { return l.plain().ForceUnlock(ctx) }

// IsLocked is rlock.Lock.IsLocked.
func (l *Lock) IsLocked(ctx context.Context) (bool, error) { return l.plain().IsLocked(ctx) }

// IsHeld is rlock.Lock.IsHeld.
func (l *Lock) IsHeld(ctx context.Context) (bool, error) { return l.plain().IsHeld(ctx) }

// HoldCount is rlock.Lock.HoldCount.
func (l *Lock) HoldCount(ctx context.Context) (int, error) { return l.plain().HoldCount(ctx) }

// RemainTTL is rlock.Lock.RemainTTL.
func (l *Lock) RemainTTL(ctx context.Context) (time.Duration, error) { return l.plain().RemainTTL(ctx) }
