package engine

import (
	"context"
	"reflect"
	"runtime"
	"sync"
	"weak"
)

// A level is one acquire of a hold, from its Lock to its Unlock.
type level struct {
	hold  *hold
	outer *level          // the nearest one, of any lock, on the chain of the context it was taken with
	below <-chan struct{} // closed when the user's context below all holds has ended; nil where that never ends
	token int64           // the hold's when the level was taken

	parent context.Context // ends the level's context with the one it was taken with; leads to no holder, so that the watchdog may refer to it

	mu      sync.Mutex
	endedBy *endError       // why the level's context has ended, other than by its parent
	signal  context.Context // ends with the level's context; made when somebody wants to be told of it
	cancel  context.CancelCauseFunc
	link    weak.Pointer[link] // to the context it was taken with, where that is not the signal's parent

	renewable bool // by the watchdog: taken without a lease of its own
	open      bool // guarded by hold.mu
}

type levelKey struct{}

// baseKey is the key of the context below the outermost hold.
type baseKey struct{}

// levelOf returns the nearest level on ctx's chain, of any lock, or nil.
func levelOf(ctx context.Context) *level {
	lv, _ := ctx.Value(levelKey{}).(*level)
	return lv
}

// levelOfLock returns the nearest level of this lock on the chain that begins at lv, or nil.
func (lv *level) levelOfLock(c *Client, name string) *level {
	for ; lv != nil; lv = lv.outer {
		if lv.hold.client == c && lv.hold.attempts.keys.Lock == name {
			return lv
		}
	}
	return nil
}

// reaches tells whether target is on the chain that begins at lv.
func (lv *level) reaches(target *level) bool {
	for ; lv != nil; lv = lv.outer {
		if lv == target {
			return true
		}
	}
	return false
}

// begin makes it an open level of the hold, for a call with ctx.
func (lv *level) begin(ctx context.Context, who *holder, h *hold, renewable bool) {
	lv.hold, lv.outer, lv.below, lv.renewable, lv.open = h, levelOf(ctx), ctx.Done(), renewable, true
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
		lv.parent = lv.outer.signalContext()
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
func (lv *level) signalContext() context.Context {
	lv.mu.Lock()
	defer lv.mu.Unlock()
	if lv.signal == nil {
		lv.signal, lv.cancel = context.WithCancelCause(linkOnly{lv.parent})
		if lv.endedBy != nil {
			lv.cancel(lv.endedBy)
		}
	}
	return lv.signal
}

// ended is why the level's context has ended, other than by its parent; nil if it has not.
func (lv *level) ended() *endError {
	lv.mu.Lock()
	defer lv.mu.Unlock()
	return lv.endedBy
}

// parentError is why the level's context has ended by its parent; nil if it has not.
func (lv *level) parentError() error {
	lv.mu.Lock()
	defer lv.mu.Unlock()
	return lv.parentErrorLocked()
}

func (lv *level) parentErrorLocked() error {
	if lv.endedBy == nil && lv.signal != nil && lv.signal.Err() != nil {
		return contextError(lv.signal)
	}
	if lv.parent.Err() != nil {
		return contextError(lv.parent)
	}
	return nil
}

// end ends the level's context.
func (lv *level) end(why *endError) {
	if l := lv.link.Value(); l != nil {
		l.stop()
	}
	lv.mu.Lock()
	defer lv.mu.Unlock()
	if lv.endedBy == nil && lv.parentErrorLocked() == nil {
		lv.endedBy = why
	}
	if lv.cancel != nil {
		lv.cancel(why)
	}
}

// A link ends a signal with a context that may lead to the holder. Only that context keeps it alive.
type link struct{ stop func() bool }

// linkOnly has nothing of a context but its end: of the values only the context package's own, whose keys are of type
// *int, by which a child finds what to register with.
type linkOnly struct{ context.Context }

func (c linkOnly) Value(key any) any {
	if _, ok := key.(*int); ok {
		return c.Context.Value(key)
	}
	return nil
}

// holdContext is the context that an acquire returns: the values and the deadline of the one it was called with, the end
// of its level, and a look at the clocks whenever it is asked.
type holdContext struct {
	context.Context                 // the one it was called with
	base            context.Context // the one that the outermost hold of its chain was taken with
	level           *level
	holder          *holder
}

func newHoldContext(ctx context.Context, lv *level, who *holder) *holdContext {
	base, ok := ctx.Value(baseKey{}).(context.Context)
	if !ok {
		base = ctx
	}
	return &holdContext{ctx, base, lv, who}
}

// linkType is the type of the context package's own value: what leads from a context to what ends it.
var linkType = func() reflect.Type {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return reflect.TypeOf(ctx)
}()

func (c *holdContext) Done() <-chan struct{} { return c.level.signalContext().Done() }

// Err tells the truth also where the watchdog has not run since the lease was over: after the process was stopped, or
// the machine suspended, the first thing that runs may be the caller.
func (c *holdContext) Err() error {
	if end := c.level.ended(); end != nil {
		return end
	}
	if err := c.Context.Err(); err != nil {
		return err
	}
	if c.level.hold.checkLease() {
		if end := c.level.ended(); end != nil {
			return end
		}
	}
	return c.Context.Err()
}

func (c *holdContext) Value(key any) any {
	switch key := key.(type) {
	case holderKey:
		return c.holder
	case levelKey:
		return c.level
	case baseKey:
		return c.base
	case TokenKey:
		if string(key) == c.level.hold.attempts.keys.Lock && c.level.hold.fenced() {
			return c.level.hold.currentToken
		}
	case *int:
		if v := c.level.signalContext().Value(key); v != nil && reflect.TypeOf(v) == linkType {
			return v
		}
	}
	return c.Context.Value(key)
}

func (c *holdContext) String() string { return "rlock hold of " + c.level.hold.attempts.keys.Lock }
