package rlock_test

import (
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/rlock"
)

// DESIGN 3: the context ends as soon as the lock is found forced open, by another client too, for a hold that nobody waits
// for, and also where no renewal would find it.
func TestVirtualForcedOpenByAnotherClient(t *testing.T) {
	for what, c := range map[string]struct{ lease, held time.Duration }{
		"watchdog":                {0, 3 * time.Second},
		"explicit lease":          {time.Hour, time.Minute},
		"within the first second": {time.Hour, 500 * time.Millisecond},
	} {
		t.Run(what, func(t *testing.T) {
			bhVirtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
				l, other := rlock.NewLock(bhClient(t, rdb), "l"), rlock.NewLock(bhClient(t, rdb), "l")
				held, err := l.TryLock(t.Context(), 0, c.lease)
				bhOK(t, err)
				bhAsleep(c.held)
				bhOK(t, held.Err())
				forced, err := other.ForceUnlock(t.Context())
				bhOK(t, err)
				bhEqual(t, "forced", forced, true)
				began := time.Now()
				<-held.Done()
				if took := time.Since(began); took > time.Second {
					t.Errorf("it was noticed after %v", took)
				}
				bhIs(t, held.Err(), rlock.ErrLost)
				bhIs(t, l.Unlock(held), rlock.ErrLost)
				bhAsleep(3 * time.Second) // the subscription is given up
				bhEqual(t, "subscribers", len(m.PubSubNumSub("redisson_lock__channel:{l}")), 1)
				bhEqual(t, "subscribers", m.PubSubNumSub("redisson_lock__channel:{l}")["redisson_lock__channel:{l}"], 0)
			})
		})
	}
}
