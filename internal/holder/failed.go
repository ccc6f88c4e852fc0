package holder

import "context"

// failedContext is the context that a failed acquire returns where the one that it was called with carries a holder: that context, with a
// level of the lock that was never taken. An Unlock with it does not find the level of a hold outside.
type failedContext struct {
	context.Context                // the one that the acquire was called with, if that is no failedContext; otherwise that one's
	lock            Lock           // whose acquire failed
	hold            *holdContext   // the nearest one on its chain, or nil
	next            *failedContext // the next one on its chain, or nil
	beside          bool           // next has the same Context: the one acquire was called with what the other had returned
}

// Failed returns what an acquire of the lock returns that was called with ctx and failed. It is ctx itself where nothing can be unlocked with
// that, and where it was returned by acquires that failed, one of them of the same lock: a loop makes no chain.
func Failed(ctx context.Context, lock *Lock) context.Context {
	if Of(ctx) == nil {
		return ctx
	}
	last, ok := ctx.(*failedContext)
	if !ok {
		hold, next := nearest(ctx)
		return &failedContext{Context: ctx, lock: *lock, hold: hold, next: next}
	}
	for c := last; ; c = c.next {
		if c.lock == *lock {
			return ctx
		}
		if !c.beside {
			break
		}
	}
	return &failedContext{Context: last.Context, lock: *lock, hold: last.hold, next: last, beside: true}
}

// HasFailed tells whether an acquire of this lock, which returned ctx or a context on its chain, has failed within this level, the nearest one
// of the lock on that chain, or nil.
func HasFailed(ctx context.Context, lock *Lock, lv *Level) bool {
	for _, c := nearest(ctx); c != nil; c = c.next {
		if c.lock == *lock {
			return lv == nil || c.hold != nil && c.hold.level.reaches(lv)
		}
	}
	return false
}

func (c *failedContext) Value(key any) any {
	if _, ok := key.(contextKey); ok {
		return c
	}
	return c.Context.Value(key)
}

func (c *failedContext) String() string { return "rlock failed acquire of " + c.lock.Name }
