package rlock_test

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/fencelock/fencelock/rlock"
)

// Inv12: the user's own subscription over the same client of Redis is given up while it dials. A call whose context lives hears of no
// cancellation.
func TestInv12_AnotherDialIsCancelled(t *testing.T) {
	redistest.Virtual(t, func(t *testing.T) {
		m, _ := redistest.Pipe(t)
		rdb := redistest.PipeClient(t, m, func(o *redis.Options) {
			o.DialTimeout = 700 * time.Millisecond
			o.Dialer = func(ctx context.Context, network, _ string) (net.Conn, error) {
				<-ctx.Done()
				return nil, &net.OpError{Op: "dial", Net: network, Err: ctx.Err()} // as net.Dialer does
			}
		})
		l := rlock.NewLock(newClient(t, rdb), "l")
		call := locktest.Start(func() error { return lockOnly(l.TryLock(t.Context(), 3*time.Second, 0)) })
		time.Sleep(2940 * time.Millisecond)
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(10*time.Millisecond, cancel)
		_, _ = rdb.Subscribe(ctx, "news").Receive(ctx)
		if err := <-call; err == nil || errors.Is(err, context.Canceled) {
			t.Errorf("TryLock says %v", err)
		}
		locktest.NoError(t, rdb.Close())
		time.Sleep(time.Minute) // the dials end
	})
}
