package deferloop

import (
	"context"
	"time"

	"github.com/fencelock/fencelock/rlock"
)

// bad waits for itself in the second round.
func bad(ctx context.Context, lock *rlock.Lock, jobs []string) error {
	for _, job := range jobs {
		held, err := lock.Lock(ctx)
		if err != nil {
			return err
		}
		defer lock.Unlock(held) // want `Unlock is deferred in a loop, to the end of the function: the next round waits for this hold`
		if err := work(held, job); err != nil {
			return err
		}
	}
	return nil
}

// good unlocks with each round.
func good(ctx context.Context, lock *rlock.Lock, jobs []string) error {
	for _, job := range jobs {
		err := lock.Do(ctx, func(ctx context.Context) error { return work(ctx, job) })
		if err != nil {
			return err
		}
	}
	return nil
}

func piles(ctx context.Context, client *rlock.Client, names []string) error {
	for _, name := range names {
		lock := rlock.NewLock(client, name)
		held, err := lock.Lock(ctx)
		if err != nil {
			return err
		}
		defer func() { _ = lock.Unlock(held) }() // want `the locks of all rounds stay taken until then`
		if err := work(held, name); err != nil {
			return err
		}
	}
	return nil
}

func literal(ctx context.Context, lock *rlock.Lock, jobs []string) error {
	for _, job := range jobs {
		err := func() error {
			held, err := lock.Lock(ctx)
			if err != nil {
				return err
			}
			defer lock.Unlock(held)
			return work(held, job)
		}()
		if err != nil {
			return err
		}
	}
	return nil
}

// all takes all locks, to have them until the end.
func all(ctx context.Context, client *rlock.Client, names []string) (err error) {
	for _, name := range names {
		lock := rlock.NewLock(client, name)
		ctx, err = lock.Lock(ctx)
		if err != nil {
			return err
		}
		defer lock.Unlock(ctx)
	}
	return work(ctx, "all")
}

func allApart(ctx context.Context, locks []*rlock.Lock) error {
	for _, lock := range locks {
		held, err := lock.Lock(ctx)
		if err != nil {
			return err
		}
		defer lock.Unlock(held)
	}
	return work(ctx, "all")
}

// retry leaves the loop with its first hold.
func retry(ctx context.Context, lock *rlock.Lock) error {
	for {
		held, err := lock.TryLock(ctx, time.Second, 0)
		if err != nil {
			continue
		}
		defer lock.Unlock(held)
		return work(held, "once")
	}
}

func work(context.Context, string) error { return nil }
