package quorum_test

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/fencelock/fencelock/quorum"
	"github.com/fencelock/fencelock/rlock"
)

// Inv12: nodes to which a dial hangs keep a call for its patience, and one that does not wait for a second at most.
func TestInv12_DialsThatHang(t *testing.T) {
	redistest.Virtual(t, func(t *testing.T) {
		defer locktest.Sleep(3 * time.Minute)
		m, _ := redistest.Pipe(t)
		var nodes []redis.UniversalClient
		for range 3 {
			nodes = append(nodes, redistest.PipeClient(t, m, func(o *redis.Options) {
				o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
					<-ctx.Done()
					return nil, &net.OpError{Op: "dial", Net: network, Err: ctx.Err()}
				}
			}))
		}
		const patience = 2 * time.Second
		c, err := quorum.New(nodes, rlock.WithPatience(patience), rlock.WithUnlockTimeout(time.Millisecond))
		locktest.NoError(t, err)
		defer func() { _ = c.Close() }()
		l := fenced.NewLock(c, "l")
		for _, call := range []struct {
			bound time.Duration
			call  func() error
		}{
			{patience, func() error { _, _, err := l.LockAndGetToken(t.Context()); return err }},
			{time.Second, func() error { _, _, err := l.TryLockAndGetToken(t.Context(), 0, 0); return err }},
		} {
			began := time.Now()
			err := call.call()
			locktest.IsError(t, err, quorum.ErrNoMajority, context.DeadlineExceeded)
			if took := time.Since(began); took > call.bound+500*time.Millisecond {
				t.Errorf("took %v", took)
			}
			t.Log(time.Since(began), err)
		}
	})
}
