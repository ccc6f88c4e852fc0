package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/rlock"
)

// dialSemaphore gives no tokens to the load, because they grow in each slot for itself: it checks them here.
func dialSemaphore(addr string) (*client, error) {
	return dialRlock(addr, func(c *rlock.Client, key string) lockFunc {
		s := fenced.NewSemaphore(c, key, permits)
		return func(ctx context.Context) (int64, func() error, error) {
			p, err := s.Acquire(ctx)
			if err != nil {
				return 0, nil, err
			}
			leave, err := enterSlot(p.Name(), p.Token())
			unlock := func() error {
				leave()
				return p.Unlock(ctx)
			}
			if err != nil {
				err = errors.Join(err, unlock())
			}
			return 0, unlock, err
		}
	})
}

// slots are the states of the slots, by name. Names are a round's own, so none is used twice.
var slots sync.Map

// enterSlot refuses a slot that somebody has, and a token that is no larger than the one before.
func enterSlot(name string, token int64) (leave func(), err error) {
	entry, _ := slots.LoadOrStore(name, new(keyState))
	state := entry.(*keyState)
	others, before := state.inside.Add(1)-1, state.token.Swap(token)
	if others > 0 || before >= token {
		err = fmt.Errorf("slot %s with token %d after %d, and %d others inside", name, token, before, others)
	}
	return func() { state.inside.Add(-1) }, err
}

// takePermit enters the permit into a sorted set by the time of its end, if there are fewer than so many.
var takePermit = redis.NewScript(`
redis.call('zremrangebyscore', KEYS[1], '-inf', ARGV[1])
if redis.call('zcard', KEYS[1]) >= tonumber(ARGV[2]) then
	return 0
end
return redis.call('zadd', KEYS[1], ARGV[3], ARGV[4])`)

func dialSortedSet(addr string) (*client, error) {
	rdb := open(addr)
	return &client{close: func() { _ = rdb.Close() }, lock: func(key string) lockFunc {
		return func(ctx context.Context) (int64, func() error, error) {
			id := uuid.NewString()
			for {
				now := time.Now()
				taken, err := takePermit.Run(ctx, rdb, []string{key}, now.UnixMilli(), permits, now.Add(lease).UnixMilli(), id).Bool()
				if taken || err != nil {
					return 0, func() error { return rdb.ZRem(ctx, key, id).Err() }, err
				}
				sleep(ctx, 10*time.Millisecond)
			}
		}
	}}, nil
}
