package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/rlock"
)

const (
	account = "account:42"
	report  = "report:daily"
	feed    = "feed:prices"
)

// story is what there is to see. Each client would be a process of its own.
func story(ctx context.Context, redisAddr string) error {
	var running sync.WaitGroup
	defer running.Wait()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	failed := make(chan error, 4)
	worker := func(name string, work func(context.Context, *rlock.Client) error) {
		running.Go(func() {
			rdb := redis.NewClient(&redis.Options{Addr: redisAddr, ClientName: name})
			defer rdb.Close()
			client, err := rlock.New(rdb, rlock.WithPresence(name))
			if err == nil {
				defer client.Close()
				err = work(ctx, client)
			}
			if err != nil {
				failed <- err
			}
		})
	}

	holds := make(chan struct{})
	worker("billing", func(ctx context.Context, c *rlock.Client) error { // takes the account, and does not come back
		lock := fenced.NewLock(c, account)
		for once := sync.OnceFunc(func() { close(holds) }); ; {
			err := lock.Do(ctx, func(ctx context.Context, token int64) error {
				once()
				<-ctx.Done() // until it is interrupted, or forced open
				return ctx.Err()
			})
			if !errors.Is(err, rlock.ErrLost) {
				return err
			}
			if err := sleep(ctx, 30*time.Second); err != nil {
				return err
			}
		}
	})
	worker("mail", func(ctx context.Context, c *rlock.Client) error { // waits for it
		select {
		case <-holds:
		case <-ctx.Done():
			return ctx.Err()
		}
		lock := fenced.NewLock(c, account)
		for {
			if err := lock.Do(ctx, func(ctx context.Context, token int64) error { return sleep(ctx, 5*time.Second) }); err != nil {
				return err
			}
		}
	})
	worker("prices", func(ctx context.Context, c *rlock.Client) error { // all is well with this one
		lock := fenced.NewLock(c, feed)
		for {
			if err := lock.Do(ctx, func(ctx context.Context, token int64) error { return sleep(ctx, 4*time.Second) }); err != nil {
				return err
			}
			if err := sleep(ctx, time.Second); err != nil {
				return err
			}
		}
	})
	worker("reports", func(ctx context.Context, c *rlock.Client) error { // dies with the lock, again and again; the next one gets it by the lease
		for {
			if err := dieWith(ctx, redisAddr); err != nil {
				return err
			}
			lock := fenced.NewLock(c, report)
			if err := lock.Do(ctx, func(ctx context.Context, token int64) error { return sleep(ctx, 10*time.Second) }); err != nil {
				return err
			}
		}
	})
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// dieWith takes the lock of the report and is gone: nobody renews the lease, nobody unlocks.
func dieWith(ctx context.Context, redisAddr string) error {
	rdb := redis.NewClient(&redis.Options{Addr: redisAddr})
	client, err := rlock.New(rdb, rlock.WithPresence("reports (dies)"), rlock.WithUnlockTimeout(100*time.Millisecond))
	if err != nil {
		return err
	}
	//rlockvet:ignore held the process dies with the lock, which is what the page is to show
	if _, _, err := fenced.NewLock(client, report).LockAndGetToken(ctx); err != nil {
		return err
	}
	if err := sleep(ctx, 11*time.Second); err != nil { // long enough to say what it holds
		return err
	}
	_ = rdb.Close() // what Redis sees of a process that was killed
	return client.Close()
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
