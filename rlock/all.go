package rlock

import (
	"context"
	"errors"

	"github.com/fencelock/fencelock/internal/engine"
)

// AcquireAll takes all these locks, and returns one hold of them. It ends when any of them is lost. Its Extend and Unlock are for all, its Remaining is that of
// the one that ends first, and its Waited tells of who waits for any. The locks are taken as by DoAll, in the order of their names. Wait, the other
// options, what ctx bounds, and the errors are as with Lock.Acquire; Lease and MaxHold are those of each lock, from its own acquire on. On an error nothing
// is held. No lock at all is an error. For locks of other kinds beside each other, and tokens, use fenced.AcquireAll.
func AcquireAll(ctx context.Context, locks []*Lock, opts ...AcquireOption) (*Hold, error) {
	all, r, err := prepare("AcquireAll", locks, opts)
	if err == nil && len(all) == 0 {
		err = &Error{"AcquireAll", "", errors.New("no locks: name one or more")}
	}
	if err != nil {
		return nil, err
	}
	taken, err := engine.TakeAll(ctx, all, r, false, wrapAny("AcquireAll"))
	if err != nil {
		return nil, err
	}
	h := new(several)
	for _, held := range taken.Holds {
		h.order = append(h.order, &Hold{held: held})
	}
	h.waited = engine.WaitedAny(h.order)
	return &Hold{taken.Holds[len(taken.Holds)-1], h}, nil
}

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
	all, r, err := prepare("DoAll", locks, opts)
	if err != nil {
		return err
	}
	return engine.DoAll(ctx, all, r, wrapAny("DoAll"), func(ctx context.Context, _ []int64) error { return fn(ctx) })
}

// prepare returns the locks and the request of a call for all of these.
func prepare(op string, locks []*Lock, opts []AcquireOption) ([]*engine.Lock, engine.Request, error) {
	r, err := engine.MakeRequest(opts)
	if err != nil {
		return nil, r, &Error{op, "", err}
	}
	all := make([]*engine.Lock, len(locks))
	for i, l := range locks {
		all[i] = l.engine()
	}
	return all, r, nil
}

// wrapAny makes the error of a method of any lock, nil for none.
func wrapAny(op string) func(l *engine.Lock, err error) error {
	return func(l *engine.Lock, err error) error { return wrap(op, l, err) }
}
