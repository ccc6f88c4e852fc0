package main

import (
	"context"
	"errors"
	"time"

	"github.com/bsm/redislock"
	"github.com/go-redsync/redsync/v4"
	redsyncredis "github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"
)

func dialRedislock(addr string) (*client, error) {
	rdb := open(addr)
	locker := redislock.New(rdb)
	return &client{close: func() { _ = rdb.Close() }, lock: func(key string) lockFunc {
		return func(ctx context.Context) (int64, func() error, error) {
			opts := &redislock.Options{RetryStrategy: redislock.LinearBackoff(10 * time.Millisecond)}
			lock, err := locker.Obtain(ctx, key, lease, opts)
			return 0, func() error { return lock.Release(ctx) }, err
		}
	}}, nil
}

func dialRedsync(addr string) (*client, error) { return dialRedsyncQuorum([]string{addr}) }

func dialRedsyncQuorum(addrs []string) (*client, error) { return dialRedsyncNodes(addrs) }

func dialRedsyncFailFast(addrs []string) (*client, error) {
	return dialRedsyncNodes(addrs, redsync.WithFailFast(true))
}

func dialRedsyncNodes(addrs []string, opts ...redsync.Option) (*client, error) {
	rdbs, closeAll := openAll(addrs)
	var pools []redsyncredis.Pool
	for _, rdb := range rdbs {
		pools = append(pools, goredis.NewPool(rdb))
	}
	rs := redsync.New(pools...)
	return &client{close: closeAll, lock: func(key string) lockFunc {
		return func(ctx context.Context) (int64, func() error, error) {
			mutex := rs.NewMutex(key, opts...)
			err := redsync.ErrFailed
			for isTaken(err) && ctx.Err() == nil {
				err = mutex.LockContext(ctx)
			}
			return 0, func() error {
				_, err := mutex.UnlockContext(ctx)
				return err
			}, err
		}
	}}, nil
}

// isTaken tells that redsync gave up because somebody else has the lock, or a server's part of it.
func isTaken(err error) bool {
	var taken *redsync.ErrTaken
	var nodeTaken *redsync.ErrNodeTaken
	return errors.Is(err, redsync.ErrFailed) || errors.As(err, &taken) || errors.As(err, &nodeTaken)
}

func dialRueidislock(addr string) (*client, error) {
	return dialRueidis(addr, rueidislock.LockerOption{})
}

func dialRueidislockTuned(addr string) (*client, error) {
	return dialRueidis(addr, rueidislock.LockerOption{
		ClientOption:   rueidis.ClientOption{MaxFlushDelay: 20 * time.Microsecond},
		NoLoopTracking: true,
		// With the default of 20 ms an acquire that is slow on a busy machine is given up, and with NOLOOP nothing wakes
		// its waiter: hundreds of 1,024 hang.
		TryNextAfter: time.Second,
	})
}

func dialRueidis(addr string, opts rueidislock.LockerOption) (*client, error) {
	opts.ClientOption.InitAddress = []string{addr}
	opts.KeyMajority = 1
	locker, err := rueidislock.NewLocker(opts)
	if err != nil {
		return nil, err
	}
	return &client{close: locker.Close, lock: func(key string) lockFunc {
		return func(ctx context.Context) (int64, func() error, error) {
			_, unlock, err := locker.WithContext(ctx, key)
			return 0, func() error { unlock(); return nil }, err
		}
	}}, nil
}
