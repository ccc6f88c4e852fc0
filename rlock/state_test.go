package rlock_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/fencelock/fencelock/rlock"
)

// lockChannel is the channel of the lock "l".
const lockChannel = "redisson_lock__channel:{l}"

// wantHolds requires that the holder of this context has so many holds.
func wantHolds(t testing.TB, l *rlock.Lock, ctx context.Context, want int) {
	t.Helper()
	n, err := l.HoldCount(ctx)
	locktest.NoError(t, err)
	locktest.Equal(t, "hold count", n, want)
	is, err := l.IsHeld(ctx)
	locktest.NoError(t, err)
	locktest.Equal(t, "is held", is, want > 0)
}

// wantLocked requires that somebody has the lock, or that nobody has it.
func wantLocked(t testing.TB, l *rlock.Lock, want bool) {
	t.Helper()
	is, err := l.IsLocked(context.Background())
	locktest.NoError(t, err)
	locktest.Equal(t, "locked", is, want)
}

// wantTaken requires of a try that waits that it says that somebody else has the lock. The try has 20 ms, and more where Redis
// does not answer within that: the machine is busy.
func wantTaken(t testing.TB, try func(wait time.Duration) error) {
	t.Helper()
	for wait := 20 * time.Millisecond; ; wait *= 2 {
		err := try(wait)
		if err != nil && strings.Contains(err.Error(), "no answer") && wait < soon {
			continue
		}
		locktest.IsError(t, err, rlock.ErrNotAcquired)
		return
	}
}

// waitsForLock returns when somebody listens to the channel of the lock "l": a waiter is in its place.
func waitsForLock(t testing.TB, rdb *redis.Client) {
	t.Helper()
	redistest.Eventually(t, soon, func() bool {
		return rdb.PubSubNumSub(context.Background(), lockChannel).Val()[lockChannel] > 0
	}, "a waiter subscribes to %s", lockChannel)
}

// wantFree requires that the lock "l" of the miniredis is free within this time, and that the clients' books are empty.
func wantFree(t testing.TB, m *miniredis.Miniredis, within time.Duration, clients ...*rlock.Client) {
	t.Helper()
	deadline := time.Now().Add(within)
	for {
		var left []string
		if m.Exists("l") {
			fields, _ := m.HKeys("l")
			left = append(left, fmt.Sprint("in Redis: ", fields))
		}
		for _, c := range clients {
			if books := c.Books(); books != "" {
				left = append(left, books)
			}
		}
		if len(left) == 0 {
			return
		}
		if !time.Now().Before(deadline) {
			t.Fatalf("Inv9: after %v there is left: %s", within, strings.Join(left, "; "))
		}
		time.Sleep(time.Millisecond)
	}
}
