package rlock_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/rlock"
)

// A taken is a hold of any kind.
type taken interface{ Unlock(context.Context) error }

// kinds are ways to take a hold that only one client has at a time, and to take one that it keeps out.
var kinds = map[string]struct {
	take, other func(ctx context.Context, c *rlock.Client, opts ...rlock.AcquireOption) (taken, error)
}{
	"lock":   {takeLock, takeLock},
	"write":  {takeWrite, takeRead},
	"read":   {takeRead, takeWrite},
	"permit": {takePermit, takePermit},
}

func takeLock(ctx context.Context, c *rlock.Client, opts ...rlock.AcquireOption) (taken, error) {
	return rlock.NewLock(c, "l").Acquire(ctx, opts...)
}

func takeRead(ctx context.Context, c *rlock.Client, opts ...rlock.AcquireOption) (taken, error) {
	return rlock.NewRWLock(c, "l").Read().Acquire(ctx, opts...)
}

func takeWrite(ctx context.Context, c *rlock.Client, opts ...rlock.AcquireOption) (taken, error) {
	return rlock.NewRWLock(c, "l").Write().Acquire(ctx, opts...)
}

func takePermit(ctx context.Context, c *rlock.Client, opts ...rlock.AcquireOption) (taken, error) {
	return fenced.NewSemaphore(c, "l", 1).Acquire(ctx, opts...)
}

// P43: however far Redis is, what is free takes one round trip, as a lock does, or two where no connection is idle. What comes free takes no more round
// trips than near by.
func TestP43_FarFromRedis(t *testing.T) {
	for name, kind := range kinds {
		for _, roundTrip := range []time.Duration{20 * time.Millisecond, 350 * time.Millisecond, 600 * time.Millisecond, time.Second, 2 * time.Second} {
			t.Run(fmt.Sprint(name, "/", roundTrip), func(t *testing.T) {
				locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
					ctx := context.Background()
					near, far := newClient(t, rdb), lineNew(t, m)
					far.link.way = roundTrip / 2
					for _, wait := range [][]rlock.AcquireOption{nil, {rlock.Wait(0)}, nil} {
						if h, err := kind.take(ctx, far.c, wait...); err == nil { // the first ones connect, and send their scripts
							locktest.NoError(t, h.Unlock(ctx))
						}
					}
					locktest.Sleep(2 * time.Minute) // until no release is owed
					trips := func(what string, most float64, opts ...rlock.AcquireOption) {
						t.Helper()
						began := time.Now()
						h, err := kind.take(ctx, far.c, opts...)
						if took := float64(time.Since(began)) / float64(roundTrip); err != nil || took > most {
							t.Fatalf("%s takes %.1f round trips, want %v: %v", what, took, most, err)
						}
						locktest.NoError(t, h.Unlock(ctx))
					}
					for range 3 {
						trips("what is free", 2.01)
						if roundTrip < time.Second { // for which a call that does not wait waits for Redis
							trips("what is free, without a wait,", 2.01, rlock.Wait(0))
						}
					}
					for range 5 {
						h, err := kind.other(ctx, near)
						locktest.NoError(t, err)
						time.AfterFunc(5*roundTrip, func() { _ = h.Unlock(ctx) })
						// The call is half a round trip under way. Where it crosses an attempt, another one follows.
						trips("what comes free", 5+2.6)
					}
				})
			})
		}
	}
}

// P43, P8: where a link becomes slow an attempt is answered before a PING that is sent later. That an earlier PING has been answered since says nothing of
// the attempt: no other one is sent.
func TestP43_ALinkThatBecomesSlow(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, _ *redis.Client) {
		far := lineNew(t, m)
		takeAndUnlock := func() {
			t.Helper()
			h, err := takePermit(t.Context(), far.c)
			locktest.NoError(t, err)
			locktest.NoError(t, h.Unlock(t.Context()))
		}
		for range 3 {
			takeAndUnlock()
		}
		far.link.way = 400 * time.Millisecond
		far.spy.Reset()
		for range 5 {
			takeAndUnlock()
		}
		locktest.Equal(t, "attempts", far.spy.Count("acquire"), 5)
	})
}
