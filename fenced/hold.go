package fenced

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/fencelock/fencelock/internal/engine"
	"github.com/fencelock/fencelock/rlock"
)

// Hold is a hold of a lock, or a permit of a Semaphore, in a variable, with its token: what Acquire returns. It ends with its Unlock, or when the lock is lost, and with
// nothing else. It may be used by any number of goroutines. A Hold that is dropped without an Unlock is not renewed any more once it is garbage.
// A nil Hold, and a zero value, hold nothing: their errors are rlock.ErrNotHeld, and say so; their slot is -1.
type Hold struct {
	held engine.Held // of AcquireAll that of the lock that was taken last
	all  *several    // of AcquireAll; nil for one hold
}

// several are the holds that one of AcquireAll is made of, in the order in which they were taken, and in that in which they were asked for.
type several struct {
	order, each []*Hold
	waited      func() <-chan struct{} // the same channel for each call
}

// Acquire takes the lock, and returns the hold, which has the token. ctx bounds how long this call waits, and not the hold: when ctx ends later the
// hold goes on, until its Unlock or its loss. The options are rlock.Wait, rlock.Lease, rlock.MaxHold, rlock.Reenter and rlock.Lasting. Use Acquire where the hold is kept in a
// variable, or outlives the call, such as behind an interface of somebody else; use LockAndGetToken, TryLockAndGetToken or Do where the functions that you call may take the same lock again.
//
// Acquire takes the lock for a new holder, whatever ctx carries, but with rlock.Reenter. A ctx that is the context of a hold of this same lock
// is an error then, as the call would wait for itself.
//
// On an error there is no hold. The error is rlock.ErrNotAcquired after rlock.Wait, or one of those of LockAndGetToken. While Redis is away
// Acquire tries again for rlock.WithPatience, 10 s by default, and with rlock.Wait(0) for a second; then it returns what Redis said. What may
// have reached Redis without an answer is released in the background.
func (l *Lock) Acquire(ctx context.Context, opts ...rlock.AcquireOption) (*Hold, error) {
	r, err := engine.MakeRequest(opts)
	if err != nil {
		return nil, l.wrap("Acquire", err)
	}
	held, err := l.engine().Hold(ctx, r)
	if err != nil {
		return nil, l.wrap("Acquire", err)
	}
	return &Hold{held: held}, nil
}

// engine is what is in the hold; nil for a nil one, which its methods take for one that nobody has.
func (h *Hold) engine() *engine.Held {
	if h == nil {
		return nil
	}
	return &h.held
}

// Name returns the name of the lock; of a permit that of its slot, such as "{jobs}:3": the name to show a guard together with Token where the slot
// itself is what is guarded.
func (h *Hold) Name() string {
	if h.isAll() {
		return ""
	}
	return h.engine().Lock().Name()
}

// Slot returns the slot of a permit, from 0 to n-1. No other living permit of the semaphore has it. It is -1 for the hold of a lock.
func (h *Hold) Slot() int {
	if h.isAll() {
		return (*engine.Held)(nil).Slot()
	}
	return h.engine().Slot()
}

// Each returns the holds that a hold of AcquireAll is made of, in the order in which they were asked for, with their tokens and slots. A hold of one lock is
// the only one.
func (h *Hold) Each() []*Hold {
	if h.isAll() {
		return slices.Clone(h.all.each)
	}
	return []*Hold{h}
}

// isAll tells whether the hold is one of AcquireAll.
func (h *Hold) isAll() bool { return h != nil && h.all != nil }

// Token returns the token to show with a write: the latest of the hold, as a re-entry takes a new one. It asks nobody. After the end of the hold
// it stays the same: storage that checks tokens refuses it as soon as it has seen the next holder's.
func (h *Hold) Token() int64 {
	if h.isAll() {
		return 0
	}
	return h.engine().Token()
}

// Context returns the context of the hold. It has the values of the context that Acquire was given, but for holders and tokens of other holds, which it
// has with rlock.Reenter alone. It carries the holder and the token (TokenFrom),
// so that a nested call of Lock or Do with it re-enters, and ends with the hold: its cause is rlock.ErrLost, rlock.ErrUnlocked or rlock.ErrClosed. It has no
// deadline.
func (h *Hold) Context() context.Context { return h.engine().Context() }

// Done returns the channel that is closed when the hold ends: that of Context.
func (h *Hold) Done() <-chan struct{} { return h.engine().Context().Done() }

// Err returns nil while the hold can be trusted, otherwise why not: rlock.ErrLost, rlock.ErrUnlocked or rlock.ErrClosed. It asks nobody, and looks
// at the clocks itself: it tells of a lease that ran out while the process stood still. Between a look at it and a write lies a gap that only
// storage can close which checks the token. Compare with errors.Is.
func (h *Hold) Err() error { return h.engine().Context().Err() }

// Remaining tells, without asking Redis, for how long the hold is good if no renewal succeeds from now on; 0 once it is over.
func (h *Hold) Remaining() time.Duration {
	left := h.engine().Remaining()
	if h.isAll() {
		for _, one := range h.all.order {
			left = min(left, one.Remaining())
		}
	}
	return left
}

// Extend makes the lease last for d from now. It never makes a lease shorter, and takes no token. A hold with a lease of its own has to be unlocked,
// or extended again, within d; a renewed one is renewed as before, and outlasts an outage of Redis of at least d that begins now. d is from 10 ms to
// 100 years. Of two calls at the same time both succeed, and the longer one counts.
//
// The error is rlock.ErrLost, rlock.ErrUnlocked or rlock.ErrClosed for a hold that is over, ctx's own if that ends first, or what Redis said
// after rlock.WithPatience; Redis may have extended the lease all the same then, and the hold goes on with the lease that it knows of.
func (h *Hold) Extend(ctx context.Context, d time.Duration) error {
	if h.isAll() {
		return engine.Together(h.all.order, func(one *Hold) error { return one.Extend(ctx, d) })
	}
	return wrap("Extend", h.engine().Lock(), h.engine().Extend(ctx, d))
}

// Waited returns a channel that is closed when somebody waits for the lock, or for any permit of the semaphore, for a holder that gives it up then. The channel stays closed: use it
// together with Done. It is closed at once if somebody waits already, otherwise as soon as one comes; within 10 s where a message of Redis was
// lost. It asks Redis in the background, and is not closed while Redis is away.
//
// It tells of the calls of this client, and of other clients that wait in the line. It does not tell of those that are in no line: Redisson's
// clients, Go clients whose Redis user has no right to the line, that the server does not count (a proxy), or that are in a cluster without sharded channels, calls that do not
// wait, and in a quorum clients that do not reach the home of the lock. A waiter that has left again may have closed the channel. Waiters
// whose process has died count until the next Unlock.
func (h *Hold) Waited() <-chan struct{} {
	if h.isAll() {
		return h.all.waited()
	}
	return h.engine().Waited()
}

// Unlock releases the hold, and ends its Context with rlock.ErrUnlocked. Of a hold that was taken with rlock.Reenter it releases this level; the
// last one frees the lock.
//
// Unlock works with a ctx that has ended: of ctx only the values count. It takes no longer than rlock.WithUnlockTimeout, 5 s by default, or
// the rest of the lease. When Redis does not answer it returns an error, and the release is sent again in the background; the hold is over
// in any case. rlock.ErrLost: the lock had been lost, so that what was done under it may have met another holder's work. rlock.ErrNotHeld:
// it was unlocked before; nothing happened.
func (h *Hold) Unlock(ctx context.Context) (err error) {
	if h.isAll() {
		for _, one := range slices.Backward(h.all.order) {
			err = errors.Join(err, one.Unlock(ctx))
		}
		return err
	}
	return wrap("Unlock", h.engine().Lock(), h.engine().Unlock(ctx))
}
