package rlock

import (
	"context"

	"github.com/fencelock/fencelock/internal/holder"
)

// NewHolder returns a context of somebody else: what is done with it does not re-enter the locks of ctx, it waits for
// them. Use it for a goroutine that must exclude its parent, as a new thread would in Java.
//
// The new context has the values of ctx, without its holder and tokens. It ends with the context that was there below
// the outermost hold of ctx, not with that hold. Where ctx was detached by context.WithoutCancel it does not end; to bound
// such a one, bound what NewHolder returns.
func NewHolder(ctx context.Context) context.Context { return holder.NewHolder(ctx) }
