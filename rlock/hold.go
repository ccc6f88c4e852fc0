package rlock

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/fencelock/fencelock/internal/engine"
)

// Hold is a hold of a lock in a variable: what Acquire returns. It ends with its Unlock, or when the lock is lost, and with nothing else. It may
// be used by any number of goroutines. A Hold that is dropped without an Unlock is not renewed any more once it is garbage.
// A nil Hold, and a zero value, hold nothing: their errors are ErrNotHeld, and say so.
type Hold struct {
	held engine.Held // of AcquireAll that of the lock that was taken last
	all  *several    // of AcquireAll; nil for one hold
}

// several are the holds that one of AcquireAll is made of, in the order in which they were taken.
type several struct {
	order  []*Hold
	waited func() <-chan struct{} // the same channel for each call
}

// AcquireOption changes one call of Acquire, here and in package fenced. Acquire returns an error for a value out of the option's range.
type AcquireOption func(*request)

type request = engine.Request

// Wait bounds how long Acquire waits, beside its context: after d it returns ErrNotAcquired. Wait(0) asks once, and does not wait. Any other
// d is a millisecond or more. Without this option Acquire waits as long as its context lives.
func Wait(d time.Duration) AcquireOption {
	return func(r *request) { r.Forever, r.Wait = false, d }
}

// Lease gives the hold a lease of its own, which nobody renews: the lock is lost after d, if Extend does not make the lease longer. d is from
// 10 ms to 100 years, in whole milliseconds. Without this option, or with d 0, the lease is that of WithLease, 30 s by default, and is
// renewed until Unlock.
func Lease(d time.Duration) AcquireOption { return func(r *request) { r.Lease = d } }

// MaxHold ends the hold d after the acquire, whatever the work does: its context ends with ErrMaxHold, which is ErrLost too, and the lock is released, so
// that work which hangs does not keep a lock that is renewed for as long as the process lives. Until then the hold is as any other: renewed,
// and free a lease after its process has died. The work may go on without the lock: let storage check the token. Where Redis is away
// then the release is sent again until it counts. d is from 10 ms to 100 years. With Reenter, and in Do, a hold that is re-entered stays as it is.
func MaxHold(d time.Duration) AcquireOption {
	return func(r *request) { r.Capped, r.MaxHold = true, d }
}

// Reenter takes the lock for the holder that the context carries, if it carries one: a lock that this holder has already is re-entered, if
// the hold's newest level is on the context's chain. Without this option Acquire takes the lock for a new holder.
func Reenter() AcquireOption { return func(r *request) { r.Reenter = true } }

// Lasting says that the hold is meant to last, as that of a leader is, and what its holder does meanwhile, in a word or two: "leads", "serves".
// Pages, commands and metrics say so instead of calling the hold stuck, and the wait for it one that is too long: see WithPresence and docs/metrics.md.
// The lock itself works as without it. word has 1 to 32 bytes, all of which can be seen. With Reenter, a hold that is re-entered stays as it is.
func Lasting(word string) AcquireOption {
	return func(r *request) { r.Lasts, r.Lasting = true, word }
}

// Acquire takes the lock, and returns the hold. ctx bounds how long this call waits, and not the hold: when ctx ends later the hold goes on, until
// its Unlock or its loss. Use Acquire where the hold is kept in a variable, or outlives the call, such as behind an interface of somebody else;
// use Lock, TryLock or Do where the functions that you call may take the same lock again.
//
// Acquire takes the lock for a new holder, whatever ctx carries, but with Reenter. A ctx that is the context of a hold of this same lock is an
// error then, as the call would wait for itself.
//
// On an error there is no hold. The error is ErrNotAcquired after Wait, or one of those of Lock. While Redis is away Acquire tries again for
// WithPatience, 10 s by default, and with Wait(0) for a second; then it returns what Redis said. What may have reached Redis without an
// answer is released in the background.
func (l *Lock) Acquire(ctx context.Context, opts ...AcquireOption) (*Hold, error) {
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

// Context returns the context of the hold. It has the values of the context that Acquire was given, but for holders and tokens of other holds, which it
// has with Reenter alone. It carries the holder, so that a nested call of
// Lock or Do with it re-enters, and ends with the hold: its cause is ErrLost, ErrUnlocked or ErrClosed. It has no deadline.
func (h *Hold) Context() context.Context { return h.engine().Context() }

// Done returns the channel that is closed when the hold ends: that of Context.
func (h *Hold) Done() <-chan struct{} { return h.engine().Context().Done() }

// Err returns nil while the hold can be trusted, otherwise why not: ErrLost, ErrUnlocked or ErrClosed. It asks nobody, and looks at the clocks
// itself: it tells of a lease that ran out while the process stood still. Compare with errors.Is.
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

// isAll tells whether the hold is one of AcquireAll.
func (h *Hold) isAll() bool { return h != nil && h.all != nil }

// Extend makes the lease last for d from now. It never makes a lease shorter. A hold with a lease of its own has to be unlocked, or extended
// again, within d; a renewed one is renewed as before, and outlasts an outage of Redis of at least d that begins now. d is from 10 ms to 100 years. Of two
// calls at the same time both succeed, and the longer one counts.
//
// The error is ErrLost, ErrUnlocked or ErrClosed for a hold that is over, ctx's own if that ends first, or what Redis said after
// WithPatience; Redis may have extended the lease all the same then, and the hold goes on with the lease that it knows of.
func (h *Hold) Extend(ctx context.Context, d time.Duration) error {
	if h.isAll() {
		return engine.Together(h.all.order, func(one *Hold) error { return one.Extend(ctx, d) })
	}
	return wrap("Extend", h.engine().Lock(), h.engine().Extend(ctx, d))
}

// Waited returns a channel that is closed when somebody waits for the lock, for a holder that gives it up then. The channel stays closed: use it
// together with Done. It is closed at once if somebody waits already, otherwise as soon as one comes; within 10 s where a message of Redis was lost.
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

// Unlock releases the hold, and ends its Context with ErrUnlocked. Of a hold that was taken with Reenter it releases this level; the last one
// frees the lock.
//
// Unlock works with a ctx that has ended: of ctx only the values count. It takes no longer than WithUnlockTimeout, 5 s by default, or the rest
// of the lease. When Redis does not answer it returns an error, and the release is sent again in the background; the hold is over in any
// case. ErrLost: the lock had been lost, so that what was done under it may have met another holder's work. ErrNotHeld: it was unlocked
// before; nothing happened.
func (h *Hold) Unlock(ctx context.Context) (err error) {
	if h.isAll() {
		for _, one := range slices.Backward(h.all.order) {
			err = errors.Join(err, one.Unlock(ctx))
		}
		return err
	}
	return wrap("Unlock", h.engine().Lock(), h.engine().Unlock(ctx))
}
