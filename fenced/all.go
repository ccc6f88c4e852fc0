package fenced

import (
	"context"

	"github.com/fencelock/fencelock/internal/engine"
	"github.com/fencelock/fencelock/rlock"
)

// DoAll runs fn with all these locks held, and with their tokens in the order of locks. It takes the locks one after the other in the order of
// their names, as all callers of DoAll do, so that two callers cannot each have what the other waits for; each is taken as LockAndGetToken
// takes it. The same lock twice counts once. DoAll is not atomic: the first lock is held while the second is waited for. rlock.Wait is one budget for all of
// them: once it is over each lock that is left is asked for once. rlock.Lease is that of each lock, from its own acquire on.
// Inside a hold of another lock the order is the caller's: two callers that hold each a lock which the other one's DoAll takes wait for each other.
//
// fn's context ends when any of the locks is lost. The locks are released in reverse order, also when fn panics. The error is that of an acquire,
// in which case fn did not run, such as rlock.ErrNotAcquired with the name of the lock that somebody else held; otherwise fn's own, joined with those of the Unlocks, each an *rlock.Error with the name of its lock. A
// nil fn, a nil lock, and two locks of one name with different clients or options are errors before Redis is asked. With no lock DoAll only
// runs fn. While Redis is away each acquire tries again for rlock.WithPatience.
func DoAll(ctx context.Context, locks []*Lock, fn func(ctx context.Context, tokens []int64) error, opts ...rlock.AcquireOption) error {
	if fn == nil {
		return wrap("DoAll", nil, engine.ErrNothingToDo)
	}
	r, err := engine.MakeRequest(opts)
	if err != nil {
		return wrap("DoAll", nil, err)
	}
	all := make([]*engine.Lock, len(locks))
	for i, l := range locks {
		all[i] = l.engine()
	}
	return engine.All(ctx, all, r, func(l *engine.Lock, err error) error { return wrap("DoAll", l, err) }, fn)
}
