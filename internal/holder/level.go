package holder

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"weak"
)

// A Level is one acquire of a hold, from its Lock to its Unlock.
type Level struct {
	Hold  *Hold
	Token int64 // the hold's when the level was taken

	OtherSide bool // of a read-write lock: it reads, within a hold that writes

	outer *Level          // the nearest one, of any lock, on the chain of the context it was taken with
	below <-chan struct{} // closed when the user's context below all holds has ended; nil where that never ends

	parent context.Context // ends the level's context with the one it was taken with; leads to no holder, so that the watchdog may refer to it

	endedBy atomic.Pointer[EndError] // why the level's context has ended, other than by its parent; changed with mu held

	mu     sync.Mutex
	signal context.Context // ends with the level's context; made when somebody wants to be told of it
	cancel context.CancelCauseFunc
	link   weak.Pointer[link] // to the context it was taken with, where that is not the signal's parent

	direct    bool // the context it was taken with ends with the outer level's, and not before
	renewable bool // by the watchdog: taken without a lease of its own
	open      bool // guarded by Hold.mu
}

// reaches tells whether target is on the chain that begins at lv.
func (lv *Level) reaches(target *Level) bool {
	for ; lv != nil; lv = lv.outer {
		if lv == target {
			return true
		}
	}
	return false
}

// begin makes it an open level of the hold, for a call with ctx.
func (lv *Level) begin(ctx context.Context, who *Holder, h *Hold, renewable bool) {
	lv.Hold, lv.outer, lv.below, lv.renewable, lv.open = h, levelOf(ctx), ctx.Done(), renewable, true
	if lv.outer != nil && lv.below != nil {
		lv.below = lv.outer.below
	}
	// The signal's parent is what ends ctx, as long as that does not lead to the holder. Where it does, because the user
	// put a cancellable context of their own above one that carries the holder, the link is one that the garbage
	// collector can follow in that direction only.
	lv.parent = context.Background()
	switch done := ctx.Done(); {
	case done == nil:
	case lv.outer != nil && lv.outer.signalContext().Done() == done:
		lv.parent, lv.direct = lv.outer.signalContext(), true
	case who.base.Done() == done:
		lv.parent = who.base
	default:
		lv.signal, lv.cancel = context.WithCancelCause(lv.parent)
		l, cancel := &link{}, lv.cancel
		l.stop = context.AfterFunc(ctx, func() {
			cancel(context.Cause(ctx))
			runtime.KeepAlive(l)
		})
		lv.link = weak.Make(l)
	}
}

// signalContext returns the level's signal.
func (lv *Level) signalContext() context.Context {
	lv.mu.Lock()
	defer lv.mu.Unlock()
	if lv.signal == nil {
		lv.signal, lv.cancel = context.WithCancelCause(linkOnly{lv.parent})
		if end := lv.endedBy.Load(); end != nil {
			lv.cancel(end)
		}
	}
	return lv.signal
}

// parentError is why the level's context has ended by its parent; nil if it has not.
func (lv *Level) parentError() error {
	lv.mu.Lock()
	defer lv.mu.Unlock()
	return lv.parentErrorLocked()
}

func (lv *Level) parentErrorLocked() error {
	if lv.endedBy.Load() == nil && lv.signal != nil && lv.signal.Err() != nil {
		return ContextError(lv.signal)
	}
	if lv.outer == nil && !lv.belowEnded() {
		return nil // the parent may be a context of the user's own type, which is not asked before it has ended: the watchdog's lock may be held
	}
	if lv.parent.Err() != nil {
		return ContextError(lv.parent)
	}
	return nil
}

// belowEnded tells whether the user's context below all holds has ended.
func (lv *Level) belowEnded() bool {
	select {
	case <-lv.below:
		return true
	default:
		return false
	}
}

// outerContextError is why the context that the level was taken with has ended, other than by the Unlock of an outer lock; nil if
// it has not.
func (lv *Level) outerContextError() error {
	why := lv.parentError()
	if why == nil || errors.Is(why, ErrUnlocked) && !errors.Is(why, ErrImported) && !lv.belowEnded() {
		return nil
	}
	return fmt.Errorf("the context that the lock was taken with has ended: %w", why)
}

// OuterContextError is why the context that the hold's outermost level was taken with has ended before that level did; nil if it has not.
func (h *Hold) OuterContextError() error {
	if h.firstLevel.endedBy.Load() != nil {
		return nil
	}
	return h.firstLevel.outerContextError()
}

// end ends the level's context.
func (lv *Level) end(why *EndError) {
	if l := lv.link.Value(); l != nil {
		l.stop()
	}
	lv.mu.Lock()
	defer lv.mu.Unlock()
	if lv.endedBy.Load() == nil && lv.parentErrorLocked() == nil {
		lv.endedBy.Store(why)
	}
	if lv.cancel != nil {
		lv.cancel(why)
	}
}
