package rlock_test

import (
	"log/slog"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/rlock"
)

// A lease that the call gave, and that nobody renews, may be left to run out: that is no warning. One that was to be renewed is, and so
// is a hold that was taken away before its lease was over.
func TestLogOwnLease(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		k := new(locktest.Log)
		c := newClient(t, rdb, rlock.WithLogger(slog.New(k)))
		lock := func(name string, lease time.Duration) (l *rlock.Lock) {
			t.Helper()
			l = rlock.NewLock(c, name)
			ctx, err := l.TryLock(t.Context(), 0, lease)
			locktest.NoError(t, err)
			t.Cleanup(func() { _ = l.Unlock(ctx) })
			return l
		}
		lock("own", 20*time.Second)
		_, err := lock("forced", 20*time.Second).ForceUnlock(t.Context())
		locktest.NoError(t, err)
		locktest.Sleep(time.Minute)
		if lines := logLines(k, logRanOut); len(lines) != 1 || lines[0].level != slog.LevelInfo || lines[0].lock != "own" {
			t.Errorf("of the lease that ran out the log has %v", lines)
		}
		if lines := logLines(k, logLost); len(lines) != 1 || lines[0].level != slog.LevelWarn || lines[0].lock != "forced" {
			t.Errorf("of the loss the log has %v", lines)
		}

		// A level without a lease of its own is there: the hold was to be renewed.
		mixed := rlock.NewLock(c, "mixed")
		outer, err := mixed.TryLock(t.Context(), 0, 0)
		locktest.NoError(t, err)
		inner, err := mixed.TryLock(outer, 0, time.Minute)
		locktest.NoError(t, err)
		m.SetError("ERR no Redis today")
		locktest.Sleep(3 * time.Minute)
		m.SetError("")
		locktest.IsError(t, mixed.Unlock(inner), rlock.ErrLost)
		locktest.IsError(t, mixed.Unlock(outer), rlock.ErrLost)
		locktest.Equal(t, "lines of leases that ran out", len(logLines(k, logRanOut)), 1)
		if lines := logLines(k, logLost); len(lines) != 2 || lines[1].level != slog.LevelWarn || lines[1].lock != "mixed" {
			t.Errorf("of the second loss the log has %v", lines)
		}
	})
}
