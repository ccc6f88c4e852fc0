package engine

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/redistest"
)

// withoutALine returns a lock of a client that knows that its user has no right to the line.
func withoutALine(t *testing.T, rdb *redis.Client) *Lock {
	t.Helper()
	c, err := newTestClient(rdb)
	locktest.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	c.noLineUntil.Store(math.MaxInt64)
	return NewLock(c, "l", LockOptions{})
}

// waits makes a call wait for the lock.
func waits(ctx context.Context, l *Lock) <-chan locktest.Result {
	return locktest.StartLock(func() (context.Context, error) {
		held, _, err := l.Acquire(ctx, Request{Forever: true})
		return held, err
	})
}

// P7, P30, P33: where there is no line a waiter looks for itself: ever more rarely while it would hear of a release, and each second at a key
// that never expires, as nobody tells of its end.
func TestP30_LooksWithoutALine(t *testing.T) {
	for _, c := range []struct {
		what        string
		ttl         time.Duration // 0: it does not expire
		least, most int           // of attempts in ten minutes
	}{
		{what: "a key that does not expire", least: 595, most: 605},
		{what: "a lock that is held for long", ttl: time.Hour, least: 60, most: 70},
	} {
		locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
			spy, l := locktest.SpyOn(rdb), withoutALine(t, rdb)
			m.HSet("l", "somebody:1", "1")
			if c.ttl > 0 {
				m.SetTTL("l", c.ttl)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
			defer cancel()
			_, _, err := l.Acquire(ctx, Request{Forever: true})
			locktest.IsError(t, err, context.DeadlineExceeded)
			if n := spy.Count("acquire"); n < c.least || n > c.most {
				t.Errorf("%s: %d attempts in ten minutes, want %d to %d", c.what, n, c.least, c.most)
			}
		})
	}
}

// P30, Inv8: where there is no line a waiter has the lock when the lease of its holder is over, and not at its next look.
func TestP30_LeaseEndsWithoutALine(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		const lease = 20 * time.Second // a look after 15 s is followed by one after 25 s
		l := withoutALine(t, rdb)
		m.HSet("l", "somebody:1", "1")
		m.SetTTL("l", lease)
		began := time.Now()
		got := <-waits(t.Context(), l)
		locktest.NoError(t, got.Err)
		if took := got.At.Sub(began); took < lease || took > lease+2*time.Millisecond {
			t.Errorf("a lease of %v was waited for for %v", lease, took)
		}
		locktest.NoError(t, l.Unlock(got.Ctx))
	})
}

// P30, P15: where there is no line a client that releases the lock leaves it to the others that were told, also where one of its own calls
// waits.
func TestP30_OthersComeFirstWithoutALine(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		theirs := redistest.PipeClient(t, m)
		locktest.SpyOn(theirs).Wrap(func(_ []string, next func() error) error {
			time.Sleep(time.Millisecond) // who does not leave the lock to them is faster
			return next()
		})
		l, other := withoutALine(t, rdb), withoutALine(t, theirs)
		held, _, err := l.Acquire(t.Context(), Request{Forever: true})
		locktest.NoError(t, err)
		mine, next := waits(t.Context(), l), waits(t.Context(), other)
		locktest.Sleep(500 * time.Millisecond) // no handoff follows
		locktest.NoError(t, l.Unlock(held))
		var got locktest.Result
		select {
		case got = <-next:
		case got = <-mine:
			t.Fatalf("the client had the lock, and has it again: %v", got.Err)
		}
		locktest.NoError(t, got.Err)
		locktest.NoError(t, other.Unlock(got.Ctx))
		got = <-mine
		locktest.NoError(t, got.Err)
		locktest.NoError(t, l.Unlock(got.Ctx))
	})
}
