package fenced_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/fencelock/fencelock/rlock"
)

// lockOf is the name of a lock or a semaphore that the error is about.
func lockOf(t *testing.T, err error) string {
	t.Helper()
	var e *rlock.Error
	if !errors.As(err, &e) {
		t.Fatalf("this is no rlock.Error: %v", err)
	}
	return e.Lock
}

// A call that gets no permit says that all are taken, and is told as ErrNotAcquired.
func TestSemaphoreErrorOfNoPermit(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, _ *miniredis.Miniredis, rdb *redis.Client) {
		c := newClient(t, rdb)
		for n, want := range map[int]string{1: "the one permit is taken", 2: "all 2 permits are taken"} {
			s := fenced.NewSemaphore(c, "jobs", n)
			var held []*fenced.Hold
			for range n {
				held = append(held, acquirePermit(t, s))
			}
			for _, wait := range []time.Duration{0, 5 * time.Second} {
				_, acquire := s.Acquire(t.Context(), rlock.Wait(wait))
				_, try := s.Acquire(t.Context(), rlock.Wait(wait))
				do := s.Do(t.Context(), func(context.Context, *fenced.Hold) error { return nil }, rlock.Wait(wait))
				for _, err := range []error{acquire, try, do} {
					locktest.IsError(t, err, rlock.ErrNotAcquired)
					locktest.ErrorSays(t, err, `"jobs": not acquired: `+want)
				}
			}
			for _, p := range held {
				locktest.NoError(t, p.Unlock(t.Context()))
			}
		}
	})
}

// An error of a permit has the name of its slot's lock, and one of an acquire that of the semaphore.
func TestSemaphoreErrorsNameWhatThereIs(t *testing.T) {
	rdb := redistest.New(t)
	s := fenced.NewSemaphore(newClient(t, rdb), "jobs", 3)
	_, err := s.Acquire(t.Context(), rlock.Lease(time.Nanosecond))
	locktest.Equal(t, "of a bad lease", lockOf(t, err), "jobs")
	a, b := acquirePermit(t, s), acquirePermit(t, s)
	locktest.NoError(t, rdb.Del(t.Context(), b.Name()).Err())
	locktest.Equal(t, "of Extend", lockOf(t, b.Extend(t.Context(), time.Minute)), "{jobs}:1")
	locktest.Equal(t, "of Unlock", lockOf(t, b.Unlock(t.Context())), "{jobs}:1")
	err = s.Do(t.Context(), func(ctx context.Context, p *fenced.Hold) error { return rdb.Del(ctx, p.Name()).Err() })
	locktest.IsError(t, err, rlock.ErrLost)
	locktest.Equal(t, "of the end of Do", lockOf(t, err), "{jobs}:1")
	locktest.NoError(t, rdb.Set(t.Context(), "{jobs}:2", "something else", 0).Err())
	_, err = s.ForceRelease(t.Context(), 2)
	locktest.Equal(t, "of ForceRelease", lockOf(t, err), "{jobs}:2")
	locktest.ErrorSays(t, err, "WRONGTYPE")
	locktest.NoError(t, a.Unlock(t.Context()))
}

// A counter that is no number keeps all from a permit. The error names the key, or the keys of which it is one, and says what to do.
func TestSemaphoreErrorOfACounter(t *testing.T) {
	rdb := redistest.New(t)
	c := newClient(t, rdb)
	for what, put := range map[string]func(key string) error{
		"a text": func(key string) error { return rdb.Set(t.Context(), key, "text", 0).Err() },
		"a list": func(key string) error { return rdb.RPush(t.Context(), key, 1).Err() },
	} {
		locktest.NoError(t, rdb.FlushAll(t.Context()).Err())
		locktest.NoError(t, put("redisson_lock_token:{jobs}:0"))
		for n, want := range map[int][]string{
			1: {`the fencing counter "redisson_lock_token:{jobs}:0" holds`},
			5: {`the lowest free slot, of "redisson_lock_token:{jobs}:0" to "redisson_lock_token:{jobs}:4",`, `fencelock show "jobs" --permits 5 says which`},
		} {
			for _, opts := range [][]fenced.Option{nil, {fenced.WithClockFloor()}} {
				_, err := fenced.NewSemaphore(c, "jobs", n, opts...).Acquire(t.Context())
				locktest.ErrorSays(t, err, append(want, `"jobs": `, "largest token that storage has seen")...)
				if strings.Contains(err.Error(), ":*") {
					t.Errorf("%s, %d permits: it names what is no key: %v", what, n, err)
				}
			}
		}
	}
	locktest.NoError(t, rdb.FlushAll(t.Context()).Err())
	locktest.NoError(t, rdb.Set(t.Context(), "redisson_lock_token:{jobs}:0", 41, 0).Err())
	p := acquirePermit(t, fenced.NewSemaphore(c, "jobs", 5)) // and so it goes on
	locktest.Equal(t, "token", p.Token(), 42)
	locktest.NoError(t, p.Unlock(t.Context()))
}

// A missing right is one to keys that there are.
func TestSemaphoreErrorOfAMissingRight(t *testing.T) {
	server := redistest.Real(t)
	locktest.NoError(t, server.Client().Do(t.Context(), "acl", "setuser", "limited", "on", ">secret", "~other", "allchannels", "+@all").Err())
	limited := server.Client(func(o *redis.Options) { o.Username, o.Password = "limited", "secret" })
	_, err := fenced.NewSemaphore(newClient(t, limited), "jobs", 5).Acquire(t.Context())
	locktest.ErrorSays(t, err, "NOPERM", `(keys "{jobs}:0" to "{jobs}:4", "redisson_lock_token:{jobs}:0" to "redisson_lock_token:{jobs}:4": the Redis user needs EVALSHA`)
}

// The name that no cluster can have is shown as it was given.
func TestSemaphoreErrorOfANameForACluster(t *testing.T) {
	_, err := fenced.NewSemaphore(newClient(t, redistest.Clustered(t, 1, 0).Client()), "a{b", 5).Acquire(t.Context())
	locktest.ErrorSays(t, err, `rlock: Acquire "a{b": the locks of the slots of "a{b"`, "different hash slots of a cluster")
}
