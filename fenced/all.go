package fenced

import (
	"context"
	"errors"
	"fmt"

	"github.com/fencelock/fencelock/internal/engine"
	"github.com/fencelock/fencelock/rlock"
)

// An Acquirer is what several of are taken at once: a *Lock, also one side of a RWLock, or a *Semaphore. AcquireAll and DoAll refuse other types.
type Acquirer interface {
	Name() string
	Acquire(ctx context.Context, opts ...rlock.AcquireOption) (*Hold, error)
}

// AcquireAll takes all of these, of a semaphore a permit, and returns one hold of them. It ends when any of them is lost. Its Extend and Unlock are for
// all, its Remaining is that of the one that ends first, and its Waited tells of who waits for any. Hold.Each has the holds one by one, with their tokens, in the
// order in which they were asked for; Token of the hold of all is 0.
//
// They are taken one after the other in the order of their names, as by all callers of AcquireAll and DoAll, so that two callers cannot each have what the
// other waits for; inside a hold of another lock the order is the caller's. The same lock twice counts once. It is not atomic: the first one is held while
// the second one is waited for. rlock.Wait is one budget for all of them: once it is over each that is left is asked for once. rlock.Lease and rlock.MaxHold
// are those of each, from its own acquire on. The other options, what ctx bounds, and what happens while Redis is away are as with Lock.Acquire.
//
// On an error nothing is held. The error is that of the acquire which failed, an *rlock.Error with its name. An element that is nil, the same semaphore twice,
// two locks of one name with different clients or options, and none at all are errors before Redis is asked.
func AcquireAll[A Acquirer](ctx context.Context, all []A, opts ...rlock.AcquireOption) (*Hold, error) {
	locks, r, err := prepare("AcquireAll", all, opts)
	if err == nil && len(all) == 0 {
		err = wrap("AcquireAll", nil, errors.New("no locks: name one or more"))
	}
	if err != nil {
		return nil, err
	}
	taken, err := engine.TakeAll(ctx, locks, r, false, wrapAny("AcquireAll", all))
	if err != nil {
		return nil, err
	}
	h := new(several)
	for _, held := range taken.Holds {
		h.order = append(h.order, &Hold{held: held})
	}
	for _, n := range taken.Of {
		h.each = append(h.each, h.order[n])
	}
	h.waited = engine.WaitedAny(h.order)
	return &Hold{h.order[len(h.order)-1].held, h}, nil
}

// DoAll runs fn with all of these held, and with their tokens in the order in which they were asked for. It takes them as AcquireAll does, for the holder of ctx,
// which bounds the holds too; each is taken as LockAndGetToken takes it, within rlock.Wait. With none DoAll only runs fn.
//
// fn's context ends when any is lost. They are released in reverse order, also when fn panics. The error is that of an acquire, in which case fn did not
// run, such as rlock.ErrNotAcquired with the name of the lock that somebody else held; otherwise fn's own, joined with those of the Unlocks, each
// an *rlock.Error with the name of its lock. A nil fn is an error.
func DoAll[A Acquirer](ctx context.Context, all []A, fn func(ctx context.Context, tokens []int64) error, opts ...rlock.AcquireOption) error {
	if fn == nil {
		return wrap("DoAll", nil, engine.ErrNothingToDo)
	}
	locks, r, err := prepare("DoAll", all, opts)
	if err != nil {
		return err
	}
	return engine.DoAll(ctx, locks, r, wrapAny("DoAll", all), fn)
}

// prepare returns the locks and the request of a call for all of these.
func prepare[A Acquirer](op string, all []A, opts []rlock.AcquireOption) (locks []*engine.Lock, r engine.Request, err error) {
	if r, err = engine.MakeRequest(opts); err != nil {
		return nil, r, wrap(op, nil, err)
	}
	for i, one := range all {
		var lock *engine.Lock
		switch one := any(one).(type) {
		case *Lock:
			lock = one.engine()
		case *Semaphore:
			if err := one.check(); err != nil {
				return nil, r, one.wrap(op, err)
			}
			lock = one.lock
		default:
			return nil, r, wrap(op, nil, fmt.Errorf("element %d is a %T: use a *fenced.Lock or a *fenced.Semaphore", i, one))
		}
		locks = append(locks, lock)
	}
	return locks, r, nil
}

// wrapAny makes the error of a method of one of these, nil for none of them.
func wrapAny[A Acquirer](op string, all []A) func(l *engine.Lock, err error) error {
	return func(l *engine.Lock, err error) error {
		for _, one := range all {
			if s, is := any(one).(*Semaphore); is && s.lock == l {
				return s.refused(op, err)
			}
		}
		return wrap(op, l, err)
	}
}
