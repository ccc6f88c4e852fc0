package recipes

import (
	"context"
	"errors"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/rlock"
)

// Import runs work with one of five permits. It waits as long as ctx lives; rlock.Wait and rlock.Lease change that.
func Import(ctx context.Context, client *rlock.Client, work func(ctx context.Context, slot int, token int64) error) (err error) {
	jobs := fenced.NewSemaphore(client, "jobs", 5) // all who use the name say 5
	permit, err := jobs.Acquire(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, permit.Unlock(ctx)) }()
	return work(permit.Context(), permit.Slot(), permit.Token())
}
