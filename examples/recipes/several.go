package recipes

import (
	"context"

	"github.com/fencelock/fencelock/fenced"
)

// Transfer moves an amount between two accounts, each of which has a lock. Two transfers in opposite directions never have each what the other
// waits for: DoAll takes the locks in the order of their names.
func Transfer(ctx context.Context, from, to *fenced.Lock, move func(ctx context.Context, from, to int64) error) error {
	return fenced.DoAll(ctx, []*fenced.Lock{from, to}, func(ctx context.Context, tokens []int64) error {
		return move(ctx, tokens[0], tokens[1]) // each write shows the token of its account
	})
}
