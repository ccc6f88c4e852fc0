package fenced

import (
	"context"

	"github.com/fencelock/fencelock/internal/holder"
)

// Token returns the current token of the hold that ctx belongs to: the latest that its holder was given, by a re-entry too. It does not ask
// Redis, and is right while Redis is away. On an error the token is 0. The errors are those of Check: rlock.ErrLost, rlock.ErrUnlocked,
// rlock.ErrNotHeld (also for a hold that was taken by an rlock.Lock, without a token), rlock.ErrClosed, or the error of the
// context that the lock was taken with.
func (l *Lock) Token(ctx context.Context) (int64, error) {
	token, err := l.engine().Token(ctx)
	return token, l.wrap("Token", err)
}

// TokenFrom returns the current token of the lock of this name, for code deep down that has only its context, and no Lock. It asks nobody.
// It is false where ctx has no token of that lock, and once the hold is over: unlocked or lost. From what a failed acquire has returned it takes
// what it would take from the context that the acquire was called with: the token of a hold outside.
func TokenFrom(ctx context.Context, name string) (int64, bool) {
	current, ok := ctx.Value(holder.TokenKey(name)).(func() (int64, bool))
	if !ok {
		return 0, false
	}
	return current()
}

// ContextWithToken returns a context from which TokenFrom takes this token: one that came over the network, from the
// process that holds the lock, or a fake in a test. It holds no lock, asks nobody, and does not end when the lock is lost.
func ContextWithToken(ctx context.Context, name string, token int64) context.Context {
	return context.WithValue(ctx, holder.TokenKey(name), func() (int64, bool) { return token, true })
}
