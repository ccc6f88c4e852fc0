package engine

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"weak"

	"github.com/fencelock/fencelock/watchdog"
)

// A level is one acquire of a hold, from its Lock to its Unlock.
type level struct {
	hold  *hold
	outer *level          // the nearest one, of any lock, on the chain of the context it was taken with
	below <-chan struct{} // closed when the user's context below all holds has ended; nil where that never ends
	token int64           // the hold's when the level was taken

	parent context.Context // ends the level's context with the one it was taken with; leads to no holder, so that the watchdog may refer to it

	endedBy atomic.Pointer[endError] // why the level's context has ended, other than by its parent; changed with mu held

	mu     sync.Mutex
	signal context.Context // ends with the level's context; made when somebody wants to be told of it
	cancel context.CancelCauseFunc
	link   weak.Pointer[link] // to the context it was taken with, where that is not the signal's parent

	direct    bool // the context it was taken with ends with the outer level's, and not before
	renewable bool // by the watchdog: taken without a lease of its own
	open      bool // guarded by hold.mu
}

type contextKey struct{}

// contextOf returns the context of the nearest hold on ctx's chain, of any lock, or nil.
func contextOf(ctx context.Context) *holdContext {
	c, _ := ctx.Value(contextKey{}).(*holdContext)
	return c
}

// levelOf returns the nearest level on ctx's chain, of any lock, or nil.
func levelOf(ctx context.Context) *level {
	if c := contextOf(ctx); c != nil {
		return c.level
	}
	return nil
}

// levelOfLock returns the nearest level of this lock on the chain that begins at lv, or nil.
func (lv *level) levelOfLock(c *Client, name string) *level {
	for ; lv != nil; lv = lv.outer {
		if lv.hold.client == c && lv.hold.attempts.Keys.Lock == name {
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
func (lv *level) signalContext() context.Context {
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
func (lv *level) parentError() error {
	lv.mu.Lock()
	defer lv.mu.Unlock()
	return lv.parentErrorLocked()
}

func (lv *level) parentErrorLocked() error {
	if lv.endedBy.Load() == nil && lv.signal != nil && lv.signal.Err() != nil {
		return contextError(lv.signal)
	}
	if lv.outer == nil && !isClosed(lv.below) {
		return nil // the parent may be a context of the user's own type, which is not asked before it has ended: the watchdog's lock may be held
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
	if lv.endedBy.Load() == nil && lv.parentErrorLocked() == nil {
		lv.endedBy.Store(why)
	}
	if lv.cancel != nil {
		lv.cancel(why)
	}
}

// A link ends a signal with a context that may lead to the holder. Only that context keeps it alive.
type link struct{ stop func() bool }

// linkKey is the key by which the context package asks a context for its own value: what leads from a context to what ends it, with
// which a derived context registers. The key is what context.Cause asks for.
var linkKey = func() (key any) {
	_ = context.Cause(keyContext{context.Background(), &key})
	return key
}()

// keyContext is an ended context that notes the key of the value that it is asked for.
type keyContext struct {
	context.Context
	key *any
}

func (keyContext) Err() error { return context.Canceled }

func (c keyContext) Value(key any) any {
	*c.key = key
	return nil
}

// linkOnly has nothing of a context but its end: of the values only the context package's own.
type linkOnly struct{ context.Context }

func (c linkOnly) Value(key any) any {
	if key == linkKey {
		return c.Context.Value(key)
	}
	return nil
}

// holdContext is the context that an acquire returns: the values and the deadline of the one it was called with, the end
// of its level, and a look at the clocks whenever it is asked.
type holdContext struct {
	context.Context                 // the one it was called with
	outer           *holdContext    // that of the outer level, where the level is direct; nil otherwise
	base            context.Context // the one that the outermost hold of its chain was taken with
	level           *level
	holder          *holder
}

func newHoldContext(ctx context.Context, lv *level, who *holder) *holdContext {
	c := &holdContext{Context: ctx, base: ctx, level: lv, holder: who}
	if outer := contextOf(ctx); outer != nil {
		c.base = outer.base
		if lv.direct {
			c.outer = outer
		}
	}
	return c
}

func (c *holdContext) Done() <-chan struct{} { return c.level.signalContext().Done() }

// Err tells the truth also where the watchdog has not run since the lease was over: after the process was stopped, or
// the machine suspended, the first thing that runs may be the caller. It reads the clocks once for all leases of nested holds, and asks the
// context below them once.
func (c *holdContext) Err() error {
	if err := c.ended(); err != nil {
		return err
	}
	now, passed := watchdog.Now(), false
	for in := c; in != nil; in = in.outer {
		if h := in.level.hold; h.lease.PassedAt(now) {
			h.lose(h.ranOut(), false)
			passed = true
		}
	}
	if passed {
		return c.ended()
	}
	return nil
}

// ended is Err without a look at the clocks.
func (c *holdContext) ended() error {
	for ; ; c = c.outer {
		if end := c.level.endedBy.Load(); end != nil {
			return end
		}
		if c.outer == nil {
			return c.Context.Err()
		}
	}
}

func (c *holdContext) Value(key any) any {
	switch key := key.(type) {
	case holderKey:
		return c.holder
	case contextKey:
		return c
	case TokenKey:
		if string(key) == c.level.hold.attempts.Keys.Lock && c.level.hold.fenced() {
			return c.level.hold.currentToken
		}
	}
	if key == linkKey {
		return c.level.signalContext().Value(key)
	}
	return c.Context.Value(key)
}

func (c *holdContext) String() string { return "rlock hold of " + c.level.hold.attempts.Keys.Lock }
