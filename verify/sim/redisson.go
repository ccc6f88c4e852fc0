package main

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/rlock"
)

// A redisson plays a client of Redisson's: the same hash, counter and message, no line, and waits that end with the lease of the holder. Each
// of its calls is a thread.
type redisson struct {
	rdb     *redis.Client
	id      string
	threads atomic.Int64
}

func newRedisson(rdb *redis.Client) *redisson { return &redisson{rdb: rdb, id: uuid.NewString()} }

func (r *redisson) ID() string                     { return r.id }
func (r *redisson) Close() error                   { return nil }
func (r *redisson) Shutdown(context.Context) error { return nil }
func (r *redisson) lock(name string) *redissonLock { return &redissonLock{r, name} }

type redissonLock struct {
	*redisson
	name string
}

type redissonHold struct {
	field  string
	levels atomic.Int64
	end    context.CancelFunc
}

type redissonKey struct{ lock string }

var (
	redissonAcquire = redis.NewScript(`
local mine = redis.call('hexists', KEYS[1], ARGV[1]) == 1
if not mine and redis.call('exists', KEYS[1]) == 1 then
  return {redis.call('pttl', KEYS[1]), 0}
end
local token = redis.call('incr', KEYS[2])
redis.call('hincrby', KEYS[1], ARGV[1], 1)
redis.call('pexpire', KEYS[1], ARGV[2])
return {-1, token}`)
	redissonRelease = redis.NewScript(`
if redis.call('hexists', KEYS[1], ARGV[1]) == 0 then
  return -1
end
if redis.call('hincrby', KEYS[1], ARGV[1], -1) > 0 then
  return 0
end
redis.call('del', KEYS[1])
redis.call('publish', KEYS[2], '0')
return 1`)
	redissonRenew = redis.NewScript(`
if redis.call('hexists', KEYS[1], ARGV[1]) == 0 then
  return 0
end
return redis.call('pexpire', KEYS[1], ARGV[2])`)
)

const redissonLease = 30 * time.Second

func (l *redissonLock) channel() string { return "redisson_lock__channel:{" + l.name + "}" }

func (l *redissonLock) asks(ctx context.Context, field string, lease time.Duration) (ttl time.Duration, token int64, err error) {
	if lease == 0 {
		lease = redissonLease
	}
	got, err := redissonAcquire.Run(ctx, l.rdb, []string{l.name, "redisson_lock_token:{" + l.name + "}"}, field, lease.Milliseconds()).Int64Slice()
	if err != nil || len(got) != 2 {
		return 0, 0, fmt.Errorf("acquire: %w", err)
	}
	return time.Duration(got[0]) * time.Millisecond, got[1], nil
}

func (l *redissonLock) take(ctx context.Context, _ how, wait, lease time.Duration) (*taken, error) {
	return takesByContext(ctx, l, wait, lease)
}

func (l *redissonLock) TryLockAndGetToken(ctx context.Context, wait, lease time.Duration) (context.Context, int64, error) {
	if h, is := ctx.Value(redissonKey{l.name}).(*redissonHold); is {
		ttl, token, err := l.asks(ctx, h.field, lease)
		if err != nil || ttl >= 0 {
			return nil, 0, firstError(err, rlock.ErrNotAcquired) // it was lost, and another has it
		}
		h.levels.Add(1)
		return ctx, token, nil
	}
	until := time.Now().Add(wait)
	field := fmt.Sprintf("%s:%d", l.id, l.threads.Add(1))
	ttl, token, err := l.asks(ctx, field, lease)
	if err == nil && ttl < 0 {
		return l.held(ctx, field, lease), token, nil
	}
	if err != nil || wait == 0 {
		return nil, 0, firstError(err, rlock.ErrNotAcquired)
	}
	heard := l.rdb.Subscribe(ctx, l.channel())
	defer func() { _ = heard.Close() }()
	messages := heard.Channel()
	for {
		ttl, token, err := l.asks(ctx, field, lease)
		if err == nil && ttl < 0 {
			return l.held(ctx, field, lease), token, nil
		}
		if err != nil {
			return nil, 0, err
		}
		rest := time.Until(until)
		if rest <= 0 {
			return nil, 0, rlock.ErrNotAcquired
		}
		t := time.NewTimer(min(rest, max(ttl, time.Millisecond)))
		select {
		case <-messages:
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return nil, 0, ctx.Err()
		}
		t.Stop()
	}
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func (l *redissonLock) LockAndGetToken(ctx context.Context) (context.Context, int64, error) {
	return l.TryLockAndGetToken(ctx, time.Hour, 0)
}

func (l *redissonLock) LockLeaseAndGetToken(ctx context.Context, lease time.Duration) (context.Context, int64, error) {
	return l.TryLockAndGetToken(ctx, time.Hour, lease)
}

// held is the context of a hold, with Redisson's watchdog where the call gave no lease.
func (l *redissonLock) held(ctx context.Context, field string, lease time.Duration) context.Context {
	ctx, end := context.WithCancel(ctx)
	h := &redissonHold{field: field, end: end}
	h.levels.Store(1)
	if lease == 0 {
		go func() {
			tick := time.NewTicker(redissonLease / 3)
			defer tick.Stop()
			for {
				select {
				case <-tick.C:
				case <-ctx.Done():
					return
				}
				if n, err := redissonRenew.Run(ctx, l.rdb, []string{l.name}, field, redissonLease.Milliseconds()).Int(); err == nil && n == 0 {
					return
				}
			}
		}()
	}
	return context.WithValue(ctx, redissonKey{l.name}, h)
}

func (l *redissonLock) HoldCount(ctx context.Context) (int, error) {
	h := ctx.Value(redissonKey{l.name}).(*redissonHold)
	return l.rdb.HGet(ctx, l.name, h.field).Int()
}

func (l *redissonLock) Unlock(ctx context.Context) error {
	h := ctx.Value(redissonKey{l.name}).(*redissonHold)
	n, err := redissonRelease.Run(context.WithoutCancel(ctx), l.rdb, []string{l.name, l.channel()}, h.field).Int()
	if h.levels.Add(-1) == 0 {
		h.end()
	}
	if err == nil && n < 0 {
		return rlock.ErrLost
	}
	return err
}
