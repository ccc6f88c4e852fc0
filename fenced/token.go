package fenced

import (
	"context"

	"github.com/fencelock/fencelock/internal/engine"
)

// Token returns the current token of the hold that ctx belongs to, without asking Redis: the latest that its holder was
// given. The errors are those of Check: ErrLost, ErrUnlocked, ErrNotHeld, ErrClosed.
func (l *Lock) Token(ctx context.Context) (int64, error) {
	token, err := l.engine().Token(ctx)
	return token, l.wrap("Token", err)
}

// TokenFrom returns the current token of the lock of this name for code deep down that has only its context. It is false
// where ctx has no token of that lock, and once the hold is over.
func TokenFrom(ctx context.Context, name string) (int64, bool) {
	current, ok := ctx.Value(engine.TokenKey(name)).(func() (int64, bool))
	if !ok {
		return 0, false
	}
	return current()
}

// ContextWithToken returns a context from which TokenFrom takes this token: one that came over the network, from the
// process that holds the lock, or a fake in a test. It holds nothing.
func ContextWithToken(ctx context.Context, name string, token int64) context.Context {
	return context.WithValue(ctx, engine.TokenKey(name), func() (int64, bool) { return token, true })
}
