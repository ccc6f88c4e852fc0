package guard

import (
	"context"

	"github.com/fencelock/fencelock/internal/holder"
)

// Token returns the current token of the lock of this name that ctx has, as fenced.TokenFrom does, for a guard's call where only the context is at
// hand: marks.Do(ctx, "account:42", guard.Token(ctx, "account:42"), write). It asks nobody. It is 0, which each guard refuses with [ErrToken],
// where ctx has no token of that lock, and once the hold is over: unlocked or lost.
func Token(ctx context.Context, lock string) int64 {
	if current, ok := ctx.Value(holder.TokenKey(lock)).(func() (int64, bool)); ok {
		if token, ok := current(); ok {
			return token
		}
	}
	return 0
}
