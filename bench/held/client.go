package main

import (
	"context"
	"fmt"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/rlock"
)

// A client is one fencelock client with connections of its own.
type client struct {
	*rlock.Client
	rdb *redis.Client
}

func dial(addr string, lease time.Duration) (*client, error) {
	rdb := redis.NewClient(&redis.Options{Addr: addr, PoolSize: 64})
	c, err := rlock.New(rdb, rlock.WithLease(lease))
	if err != nil {
		_ = rdb.Close()
		return nil, err
	}
	return &client{c, rdb}, nil
}

func (c *client) close() {
	_ = c.Close()
	_ = c.rdb.Close()
}

// A held lock and the context that its holder works with.
type held struct {
	lock *fenced.Lock
	ctx  context.Context
}

// workers is how many goroutines take and release many locks.
const workers = 64

// each runs f for 0 to n-1 on a few goroutines, up to the first error.
func each(ctx context.Context, n int, f func(i int) error) error {
	var (
		next  atomic.Int64
		group sync.WaitGroup
		once  sync.Once
		first error
	)
	for range workers {
		group.Go(func() {
			for i := int(next.Add(1) - 1); i < n && ctx.Err() == nil; i = int(next.Add(1) - 1) {
				if err := f(i); err != nil {
					once.Do(func() { first = err })
					next.Store(int64(n))
				}
			}
		})
	}
	group.Wait()
	if first == nil {
		first = ctx.Err()
	}
	return first
}

// takeAll fills the slice with held locks.
func (c *client) takeAll(ctx context.Context, prefix string, locks []held) error {
	return each(ctx, len(locks), func(i int) error {
		lock := fenced.NewLock(c.Client, prefix+strconv.Itoa(i))
		ctx, _, err := lock.LockAndGetToken(context.Background())
		locks[i] = held{lock, ctx}
		return err
	})
}

func unlockAll(ctx context.Context, locks []held) error {
	return each(ctx, len(locks), func(i int) error { return locks[i].lock.Unlock(locks[i].ctx) })
}

// pairs takes and releases locks for a while and returns how many a second.
func (c *client) pairs(ctx context.Context, goroutines int, d time.Duration) (float64, error) {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	var done atomic.Int64
	began := time.Now()
	group, failed := sync.WaitGroup{}, make(chan error, goroutines)
	for g := range goroutines {
		group.Go(func() {
			lock := fenced.NewLock(c.Client, fmt.Sprintf("pairs:%d", g))
			for ctx.Err() == nil {
				held, _, err := lock.LockAndGetToken(context.Background())
				if err == nil {
					err = lock.Unlock(held)
				}
				if err != nil {
					failed <- err
					return
				}
				done.Add(1)
			}
		})
	}
	group.Wait()
	select {
	case err := <-failed:
		return 0, err
	default:
	}
	runtime.KeepAlive(c)
	return float64(done.Load()) / time.Since(began).Seconds(), nil
}
