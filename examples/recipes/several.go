package recipes

import (
	"context"
	"slices"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/rlock"
)

// DoAll runs fn with all these locks held. It takes them in the order of their names, as every other caller of DoAll does: so two
// callers cannot each have what the other waits for. fn finds the tokens with fenced.TokenFrom.
func DoAll(ctx context.Context, client *rlock.Client, names []string, fn func(ctx context.Context) error) error {
	inOrder := slices.Compact(slices.Sorted(slices.Values(names)))
	return doAll(ctx, client, inOrder, fn)
}

func doAll(ctx context.Context, client *rlock.Client, names []string, fn func(ctx context.Context) error) error {
	if len(names) == 0 {
		return fn(ctx)
	}
	lock := fenced.NewLock(client, names[0])
	return lock.Do(ctx, func(ctx context.Context, _ int64) error { return doAll(ctx, client, names[1:], fn) })
}
