package recipes

import (
	"context"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/rlock"
)

// Publish lets many show a page at the same time, and one change it.
func Publish(ctx context.Context, client *rlock.Client, show, change func(ctx context.Context, token int64) error) error {
	page := fenced.NewRWLock(client, "page")
	if err := page.Read().Do(ctx, show); err != nil { // beside others that read
		return err
	}
	return page.Write().Do(ctx, change) // alone
}
