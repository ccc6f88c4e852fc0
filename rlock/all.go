package rlock

import (
	"context"

	"github.com/fencelock/fencelock/internal/engine"
)

// DoAll runs fn with all these locks held. It takes them one after the other in the order of their names, as all callers of DoAll do, so that two
// callers cannot each have what the other waits for; each is taken as Lock takes it. The same lock twice counts once. DoAll is not atomic: the
// first lock is held while the second is waited for. Wait is one budget for all of them: once it is over each lock that is left is asked for
// once, as with Wait(0). Lease is that of each lock, from its own acquire on. Inside a hold of another lock the order is the caller's: two callers that hold each a lock
// which the other one's DoAll takes wait for each other.
//
// fn's context ends when any of the locks is lost. The locks are released in reverse order, also when fn panics. The error is that of an acquire,
// in which case fn did not run, such as ErrNotAcquired with the name of the lock that somebody else held; otherwise fn's own, joined with those of the Unlocks, each an *Error with the name of its lock. A nil fn,
// a nil lock, and two locks of one name with different clients are errors before Redis is asked. With no lock DoAll only runs fn.
func DoAll(ctx context.Context, locks []*Lock, fn func(ctx context.Context) error, opts ...AcquireOption) error {
	if fn == nil {
		return &Error{"DoAll", "", engine.ErrNothingToDo}
	}
	r, err := engine.MakeRequest(opts)
	if err != nil {
		return &Error{"DoAll", "", err}
	}
	all := make([]*engine.Lock, len(locks))
	for i, l := range locks {
		all[i] = l.engine()
	}
	return engine.All(ctx, all, r, func(l *engine.Lock, err error) error { return wrap("DoAll", l, err) },
		func(ctx context.Context, _ []int64) error { return fn(ctx) })
}
