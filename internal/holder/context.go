package holder

import (
	"context"

	"github.com/fencelock/fencelock/watchdog"
)

// The context keys of a call's holder, and of the nearest context that an acquire has returned, a *holdContext or a *failedContext.
type (
	holderKey  struct{}
	contextKey struct{}
)

// TokenKey is the context key of the current token of the lock with this name. Its value is a func() (int64, bool).
type TokenKey string

// Of returns the holder that ctx carries, or nil.
func Of(ctx context.Context) *Holder {
	who, _ := ctx.Value(holderKey{}).(*Holder)
	return who
}

// contextOf returns the context of the nearest hold on ctx's chain, of any lock, or nil.
func contextOf(ctx context.Context) *holdContext {
	hold, _ := nearest(ctx)
	return hold
}

// nearest returns the nearest context of a hold, and the nearest one of failed acquires, on ctx's chain, or nil.
func nearest(ctx context.Context) (*holdContext, *failedContext) {
	switch c := ctx.Value(contextKey{}).(type) {
	case *holdContext:
		return c, c.failed
	case *failedContext:
		return c.hold, c
	}
	return nil, nil
}

// levelOf returns the nearest level on ctx's chain, of any lock, or nil.
func levelOf(ctx context.Context) *Level {
	if c := contextOf(ctx); c != nil {
		return c.level
	}
	return nil
}

// LevelOf returns the nearest level of this lock on ctx's chain, or nil.
func LevelOf(ctx context.Context, lock *Lock) *Level {
	lv := levelOf(ctx)
	for lv != nil && *lv.Hold.lock != *lock {
		lv = lv.outer
	}
	return lv
}

// HeldBy returns the names of the locks of the open levels that the context was taken with or under, the innermost first.
func HeldBy(ctx context.Context) []string {
	var names []string
	for lv := levelOf(ctx); lv != nil; lv = lv.outer {
		if lv.isOpen() {
			names = append(names, lv.Hold.lock.Name)
		}
	}
	return names
}

// NewHolder is rlock.NewHolder.
func NewHolder(ctx context.Context) context.Context {
	base := ctx
	if held := contextOf(ctx); held != nil {
		if base = held.base; ctx.Done() == nil {
			base = context.WithoutCancel(base)
		}
	}
	return &holderContext{Context: base, values: ctx, holder: New(base)}
}

// holderContext is what NewHolder returns: base's end and the values of where it was made.
type holderContext struct {
	context.Context
	values context.Context
	holder *Holder
}

func (c *holderContext) Value(key any) any {
	switch key := key.(type) {
	case holderKey:
		return c.holder
	case contextKey:
		return nil
	case TokenKey:
		return c.holder.token(string(key))
	}
	if key == linkKey {
		return c.Context.Value(key) // it ends with base
	}
	return c.values.Value(key) // which has those of base
}

func (c *holderContext) String() string { return "rlock.NewHolder" }

// holdContext is the context that an acquire returns: the values and the deadline of the one it was called with, the end
// of its level, and a look at the clocks whenever it is asked.
type holdContext struct {
	context.Context                 // the one it was called with
	outer           *holdContext    // that of the outer level, where the level is direct; nil otherwise
	base            context.Context // the one that the outermost hold of its chain was taken with
	level           *Level
	holder          *Holder
	failed          *failedContext // the nearest one on its chain, or nil
}

// Context returns the context of the level, which the holder's call with ctx has opened.
func (lv *Level) Context(ctx context.Context, who *Holder) context.Context {
	outer, failed := nearest(ctx)
	c := &holdContext{Context: ctx, base: ctx, level: lv, holder: who, failed: failed}
	if outer != nil {
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
		if h := in.level.Hold; h.Lease.PassedAt(now) {
			h.Lease.Owner.Lost(watchdog.ErrExpired)
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
		if h := c.level.Hold; string(key) == h.lock.Name && h.Token() != 0 {
			return h.CurrentToken
		}
	}
	if key == linkKey {
		return c.level.signalContext().Value(key)
	}
	return c.Context.Value(key)
}

func (c *holdContext) String() string { return "rlock hold of " + c.level.Hold.lock.Name }
