package rlock_test

import (
	"context"
	"net"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/fencelock/fencelock/rlock"
)

// refusedVirtually runs a test in virtual time with a lock client whose connections are refused while down is set.
func refusedVirtually(t *testing.T, test func(t *testing.T, rdb *redis.Client, l *rlock.Lock, down *atomic.Bool)) {
	t.Helper()
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		var down atomic.Bool
		own := redistest.PipeClient(t, m, func(o *redis.Options) {
			dial := o.Dialer
			o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
				if down.Load() {
					return nil, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
				}
				return dial(ctx, network, addr)
			}
		})
		defer locktest.Sleep(time.Minute) // go-redis goes on dialing
		test(t, rdb, rlock.NewLock(newClient(t, own), "l"), &down)
	})
}

// Inv12: Redis is down, and a call ends before go-redis, which dials five times, says why: the error has both, the end of
// the wait or of the context, and the refused connection.
func TestRefusedWithinAShortWait(t *testing.T) {
	for name, call := range map[string]func(ctx context.Context, l *rlock.Lock) error{
		"TryLock": func(ctx context.Context, l *rlock.Lock) error {
			_, err := l.TryLock(ctx, 100*time.Millisecond, 0)
			return err
		},
		"Lock until its context ends": func(ctx context.Context, l *rlock.Lock) error {
			ctx, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
			defer cancel()
			_, err := l.Lock(ctx)
			return err
		},
		"one try until its context ends": func(ctx context.Context, l *rlock.Lock) error {
			ctx, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
			defer cancel()
			_, err := l.TryLock(ctx, 0, 0)
			return err
		},
		"Lock with its third attempt under way": func(ctx context.Context, l *rlock.Lock) error {
			ctx, cancel := context.WithTimeout(ctx, 1500*time.Millisecond)
			defer cancel()
			_, err := l.Lock(ctx)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			refusedVirtually(t, func(t *testing.T, _ *redis.Client, l *rlock.Lock, down *atomic.Bool) {
				down.Store(true)
				for range 2 { // the second one as the first
					locktest.IsError(t, call(t.Context(), l), context.DeadlineExceeded, syscall.ECONNREFUSED)
				}
			})
		})
	}
}

// What the network said before a call, or before Redis answered it, is not why the call has waited in vain.
func TestNoRefusalOfBefore(t *testing.T) {
	refusedVirtually(t, func(t *testing.T, rdb *redis.Client, l *rlock.Lock, down *atomic.Bool) {
		down.Store(true)
		_, err := l.TryLock(t.Context(), 3*time.Second, 0)
		locktest.IsError(t, err, syscall.ECONNREFUSED)
		locktest.Sleep(time.Second)
		down.Store(false)
		take(t, rlock.NewLock(newClient(t, rdb), "l"), t.Context())
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		_, err = l.Lock(ctx)
		locktest.IsError(t, err, context.DeadlineExceeded)
		locktest.IsNotError(t, err, syscall.ECONNREFUSED)
		_, err = l.TryLock(t.Context(), 2*time.Second, 0)
		locktest.IsError(t, err, rlock.ErrNotAcquired)
	})
}

// However many lock clients a client of Redis has, it gets one hook: a dial is told of once.
func TestOneHookForAClientOfRedis(t *testing.T) {
	rdb := redistest.New(t)
	var wrapped atomic.Int32
	rdb.AddHook(hookCount{&wrapped})
	before := wrapped.Load()
	for range 10 {
		locktest.NoError(t, newClient(t, rdb).Close())
	}
	if n := wrapped.Load() - before; n != 1 { // go-redis asks each hook again when one is added
		t.Errorf("10 lock clients have added %d hooks", n)
	}
}

type hookCount struct{ dials *atomic.Int32 }

func (h hookCount) DialHook(next redis.DialHook) redis.DialHook {
	h.dials.Add(1)
	return next
}
func (hookCount) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }
func (hookCount) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}
