package rlock_test

import (
	"context"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/fencelock/fencelock/rlock"
)

// withoutALine returns a lock of a client that knows that its user has no right to the line.
func withoutALine(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) *rlock.Lock {
	t.Helper()
	javaHolds(t, rdb, time.Hour)
	lacking(m, "ZADD", "ZCARD", "ZRANGE", "ZRANK", "ZREM", "ZSCORE")
	l := rlock.NewLock(newClient(t, rdb), "l")
	_, err := l.TryLock(t.Context(), 10*time.Millisecond, 0)
	locktest.IsError(t, err, rlock.ErrNotAcquired)
	locktest.Sleep(3 * time.Second) // what the client kept of the lock is gone
	m.Del("l")
	return l
}

// waits makes a call wait for the lock.
func waits(ctx context.Context, l *rlock.Lock) <-chan locktest.Result {
	return locktest.StartLock(func() (context.Context, error) { return l.Lock(ctx) })
}

// P7, P30, P33: where there is no line a waiter looks for itself: ever more rarely while it would hear of a release, and each second at a key
// that never expires, as nobody tells of its end. Each minute it asks once whether there is a line.
func TestP30_LooksWithoutALine(t *testing.T) {
	for _, c := range []struct {
		what        string
		ttl         time.Duration // 0: it does not expire
		least, most int           // of attempts in ten minutes
	}{
		{what: "a key that does not expire", least: 595, most: 615},
		{what: "a lock that is held for long", ttl: time.Hour, least: 60, most: 80},
	} {
		locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
			spy, l := locktest.SpyOn(rdb), withoutALine(t, m, rdb)
			javaHolds(t, rdb, c.ttl)
			_, err := l.TryLock(t.Context(), 10*time.Minute, 0)
			locktest.IsError(t, err, rlock.ErrNotAcquired)
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
		l := withoutALine(t, m, rdb)
		javaHolds(t, rdb, lease)
		began := time.Now()
		held := take(t, l, t.Context())
		if took := time.Since(began); took < lease || took > lease+2*time.Millisecond {
			t.Errorf("a lease of %v was waited for for %v", lease, took)
		}
		locktest.NoError(t, l.Unlock(held))
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
		l, other := withoutALine(t, m, rdb), withoutALine(t, m, theirs)
		held := take(t, l, t.Context())
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

// P30: a series of calls takes a lock that nobody else wants as fast as it can, also where there is no line: others that only listen are not waited for.
func TestP30_ASeriesWithoutALine(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		l := withoutALine(t, m, rdb)
		listener := rdb.Subscribe(t.Context(), lockChannel)
		defer func() { _ = listener.Close() }()
		_, err := listener.Receive(t.Context())
		locktest.NoError(t, err)
		began := time.Now()
		for range 10 {
			locktest.NoError(t, l.Unlock(take(t, l, t.Context())))
		}
		locktest.Equal(t, "ten holds take", time.Since(began), 0)
	})
}

// P19, P30: a client in the line that does without the line from now on leaves it, and hears of releases.
func TestP30_AClientInTheLineThatDoesWithoutIt(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		javaHolds(t, rdb, time.Hour)
		locktest.NoError(t, rdb.HSet(t.Context(), "b", javaField, 1).Err())
		p := lineNew(t, m)
		got := p.waits(t, t.Context())
		locktest.Sleep(time.Second)
		locktest.Equal(t, "in the line", len(lineOf(t, m)), 1)
		lackingAt(m, "fencelock_line:{b}", "ZADD")
		_, err := rlock.NewLock(p.c, "b").TryLock(t.Context(), 10*time.Millisecond, 0)
		locktest.IsError(t, err, rlock.ErrNotAcquired)
		locktest.Sleep(15 * time.Second) // it looks
		locktest.Equal(t, "in the line, after a look", len(lineOf(t, m)), 0)
		began := time.Now()
		m.Del("l")
		m.Publish(lockChannel, "0")
		lineGets(t, p, got, began, 0)
	})
}
