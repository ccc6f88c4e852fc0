package fenced_test

import (
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/internal/test/locktest"
)

// With the floor tokens go on growing after everything in Redis was lost, by every way to take one: an acquire, a
// re-entry, and a handoff within the client.
func TestFloorSurvivesALoss(t *testing.T) {
	for name, opts := range map[string][]fenced.Option{
		"plain":  {fenced.WithClockFloor()},
		"expiry": {fenced.WithCounterExpiry(time.Hour)},
	} {
		t.Run(name, func(t *testing.T) {
			rdb, c, _ := newLock(t)
			l := fenced.NewLock(c, "l", opts...)
			last := time.Now().Add(-time.Minute).UnixMicro()
			for round := range 3 {
				held, token, err := l.LockAndGetToken(t.Context())
				locktest.NoError(t, err)
				grows(t, &last, token)
				inner, token, err := l.LockAndGetToken(held)
				locktest.NoError(t, err)
				grows(t, &last, token)
				locktest.NoError(t, l.Unlock(inner))
				var all sync.WaitGroup
				for range 5 {
					all.Go(func() {
						next, token, err := l.LockAndGetToken(t.Context())
						if err != nil {
							t.Error(err)
							return
						}
						grows(t, &last, token) // the lock orders these
						if err := l.Unlock(next); err != nil {
							t.Error(err)
						}
					})
				}
				locktest.NoError(t, l.Unlock(held))
				all.Wait()
				if ttl := rdb.PTTL(t.Context(), tokenKey).Val(); (name == "expiry") != (ttl > 0) || ttl > time.Hour {
					t.Errorf("the counter lives for %v", ttl)
				}
				if round < 2 {
					locktest.NoError(t, rdb.FlushAll(t.Context()).Err())
				}
			}
		})
	}
}

// The counter is lost while the lock is held: whoever gets the lock, or another level of it, next has a larger token.
func TestFloorCounterLost(t *testing.T) {
	for _, how := range []string{"re-entry", "handoff"} {
		t.Run(how, func(t *testing.T) {
			locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
				l := fenced.NewLock(newClient(t, rdb), "l", fenced.WithClockFloor())
				held, last, err := l.LockAndGetToken(t.Context())
				locktest.NoError(t, err)
				var all sync.WaitGroup
				for range 3 {
					if how == "re-entry" {
						break
					}
					all.Go(func() {
						next, token, err := l.LockAndGetToken(t.Context())
						if err != nil {
							t.Error(err)
							return
						}
						grows(t, &last, token)
						time.Sleep(time.Millisecond) // the clock goes on
						m.Del(tokenKey)
						if err := l.Unlock(next); err != nil {
							t.Error(err)
						}
					})
				}
				synctest.Wait()
				time.Sleep(time.Millisecond)
				m.Del(tokenKey)
				if how == "re-entry" {
					inner, token, err := l.LockAndGetToken(held)
					locktest.NoError(t, err)
					grows(t, &last, token)
					locktest.NoError(t, l.Unlock(inner))
				}
				locktest.NoError(t, l.Unlock(held))
				all.Wait()
			})
		})
	}
}

func grows(t *testing.T, last *int64, token int64) {
	t.Helper()
	if token <= *last {
		t.Errorf("Inv2: token %d after %d", token, *last)
	}
	*last = token
}

// A server clock that is set back changes nothing while the counter is there.
func TestFloorClockSetBack(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		l := fenced.NewLock(newClient(t, rdb), "l", fenced.WithClockFloor())
		now := time.Now()
		var last int64
		for _, at := range []time.Duration{0, time.Hour, -time.Hour, -time.Hour, 2 * time.Hour} {
			m.SetTime(now.Add(at))
			held, token, err := l.LockAndGetToken(t.Context())
			locktest.NoError(t, err)
			want := max(last+1, now.Add(at).UnixMicro())
			locktest.Equal(t, "token", token, want)
			last = token
			locktest.NoError(t, l.Unlock(held))
		}
	})
}

// Redisson's INCR on the same counter gives the next token, and ours is larger again.
func TestFloorBesideRedisson(t *testing.T) {
	rdb, _, l := newLock(t, fenced.WithClockFloor())
	var last int64
	for range 3 {
		held, token, err := l.LockAndGetToken(t.Context())
		locktest.NoError(t, err)
		grows(t, &last, token)
		locktest.NoError(t, l.Unlock(held))
		grows(t, &last, rdb.Incr(t.Context(), tokenKey).Val())
	}
}

// The stable token stays, also with a floor.
func TestFloorStable(t *testing.T) {
	_, _, l := newLock(t, fenced.WithClockFloor(), fenced.WithStableToken())
	held, token, err := l.LockAndGetToken(t.Context())
	locktest.NoError(t, err)
	inner := take(t, l, held, token)
	locktest.NoError(t, l.Unlock(inner))
	locktest.NoError(t, l.Unlock(held))
}

func TestFloorExpiryTooShort(t *testing.T) {
	for _, d := range []time.Duration{-time.Hour, 0, time.Millisecond} {
		rdb, _, l := newLock(t, fenced.WithCounterExpiry(d))
		_, _, err := l.LockAndGetToken(t.Context())
		if err == nil || !strings.Contains(err.Error(), "expiry") {
			t.Errorf("%v: %v", d, err)
		}
		if n := rdb.DBSize(t.Context()).Val(); n != 0 {
			t.Errorf("%v: Redis was asked, and has %s keys", d, strconv.FormatInt(n, 10))
		}
	}
	_, _, l := newLock(t, fenced.WithCounterExpiry(time.Second)) // the shortest
	_, _, err := l.LockAndGetToken(t.Context())
	locktest.NoError(t, err)
}
