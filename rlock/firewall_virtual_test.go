package rlock_test

import (
	"runtime"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/locktest"
	"github.com/fencelock/fencelock/internal/redistest"
	"github.com/fencelock/fencelock/rlock"
)

// P8: idle connections whose other end is gone without a word fail one after the other, each after the ReadTimeout. Renewals go past more of
// them than there is time for in one lease.
func TestP8_DeadConnectionsAreLeft(t *testing.T) {
	redistest.Virtual(t, func(t *testing.T) {
		m, direct := redistest.Pipe(t)
		var firewall redistest.Firewall
		rdb := redistest.PipeClient(t, m, func(o *redis.Options) { o.Dialer = firewall.Dialer(o.Dialer) })
		const lease = 30 * time.Second
		client := newClient(t, rdb, rlock.WithLease(lease))
		l := rlock.NewLock(client, "a")
		held, err := l.Lock(t.Context())
		locktest.NoError(t, err)
		redistest.LeaveIdle(t, rdb, manyIdle)
		firewall.Forget()
		time.Sleep(3 * lease)
		locktest.NoError(t, held.Err())
		if left := direct.PTTL(t.Context(), "a").Val(); left < lease/2 {
			t.Errorf("the lock has %v left", left)
		}
		locktest.NoError(t, l.Unlock(held))
		runtime.KeepAlive(client)
	})
}
