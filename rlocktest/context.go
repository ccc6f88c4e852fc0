package rlocktest

import (
	"context"

	"github.com/fencelock/fencelock/internal/engine"
	"github.com/fencelock/fencelock/internal/holder"
)

// Context returns a context for code that is called with a held lock and takes none itself. It needs no Server. The context carries the
// token of the lock with this name, as fenced.TokenFrom reads it. lose ends it as the loss of the lock does: its Err and its cause
// are rlock.ErrLost, and context.Canceled too, by errors.Is.
//
// No lock knows such a context: Unlock, Check and a nested acquire find no hold in it.
func Context(ctx context.Context, name string, token int64) (held context.Context, lose func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	c := &heldContext{ctx, name, token, engine.EndError(name)}
	return c, func() { cancel(c.end) }
}

// heldContext is a context whose Err is the loss of a lock, where that is what ended it.
type heldContext struct {
	context.Context
	name  string
	token int64
	end   error
}

// Value has the token, until the lock is lost.
func (c *heldContext) Value(key any) any {
	if key == holder.TokenKey(c.name) {
		return func() (int64, bool) { return c.token, c.Err() != c.end }
	}
	return c.Context.Value(key)
}

// Err is the error of a lock's context.
func (c *heldContext) Err() error {
	if err := c.Context.Err(); err == nil || context.Cause(c.Context) != c.end {
		return err
	}
	return c.end
}
