package rlock_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/fencelock/fencelock/rlock"
)

// The context ends as soon as the lock is found forced open, by another client too, for a hold that nobody waits
// for, and also where no renewal would find it: a hold that is older than a second hears the message, a younger one looks
// when it is that old, and one whose renewals are at most a second apart learns it from these.
func TestForcedOpenByAnotherClient(t *testing.T) {
	const (
		heard = 110 * time.Millisecond // until the message is asked about
		young = time.Second
	)
	test := func(t *testing.T, lease time.Duration, explicit bool) {
		locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
			var opts []rlock.Option
			var own time.Duration
			if own = lease; !explicit {
				own, opts = 0, []rlock.Option{rlock.WithLease(lease)}
			}
			l := rlock.NewLock(newClient(t, rdb, opts...), "l")
			other := rlock.NewLock(newClient(t, redistest.PipeClient(t, m)), "l")
			for age := time.Duration(0); age < 6*time.Second && (!explicit || age < lease-2*heard); age += 170 * time.Millisecond {
				held, err := l.TryLock(t.Context(), 0, own)
				locktest.NoError(t, err)
				locktest.Sleep(age)
				locktest.NoError(t, held.Err())
				forced, err := other.ForceUnlock(t.Context())
				locktest.NoError(t, err)
				locktest.Equal(t, "forced", forced, true)
				began, most := time.Now(), heard
				switch {
				case !explicit && lease <= 3*time.Second:
					most = lease / 3
				case age < young:
					most = young - age + heard
				}
				<-held.Done()
				if took := time.Since(began); took > most {
					t.Errorf("of an age of %v it was noticed after %v, want %v", age, took, most)
				}
				locktest.IsError(t, held.Err(), rlock.ErrLost)
				locktest.IsError(t, l.Unlock(held), rlock.ErrLost)
				locktest.Sleep(3 * time.Second) // the subscription is given up
				locktest.Equal(t, "subscribers", len(m.PubSubNumSub("redisson_lock__channel:{l}")), 1)
				locktest.Equal(t, "subscribers", m.PubSubNumSub("redisson_lock__channel:{l}")["redisson_lock__channel:{l}"], 0)
			}
		})
	}
	for _, lease := range []time.Duration{300 * time.Millisecond, 1500 * time.Millisecond, 3 * time.Second, 3100 * time.Millisecond, 4 * time.Second, 5900 * time.Millisecond, 6 * time.Second, 30 * time.Second} {
		t.Run(fmt.Sprint("watchdog ", lease), func(t *testing.T) { test(t, lease, false) })
		if lease > time.Second+heard { // a shorter one is over before it would be looked for
			t.Run(fmt.Sprint("explicit ", lease), func(t *testing.T) { test(t, lease, true) })
		}
	}
	t.Run("explicit hour", func(t *testing.T) { test(t, time.Hour, true) })
}

// P10: of a hold that listens Redis is asked once about all messages of a tenth of a second, however many come; and again about those that come
// later.
func TestP10_ManyMessagesAreOneQuestion(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		l := rlock.NewLock(newClient(t, rdb), "l")
		held, err := l.LockLease(t.Context(), time.Hour)
		locktest.NoError(t, err)
		locktest.Sleep(2 * time.Second) // it listens
		spy := locktest.SpyOn(rdb)
		for range 9 {
			m.Publish(lockChannel, "0")
			locktest.Sleep(10 * time.Millisecond)
		}
		locktest.Sleep(time.Second)
		locktest.Equal(t, "questions", spy.Count("renew"), 1)
		locktest.NoError(t, held.Err())
		m.Del("l")
		began := time.Now()
		m.Publish(lockChannel, "0")
		<-held.Done()
		if took := time.Since(began); took > 110*time.Millisecond {
			t.Errorf("noticed after %v", took)
		}
		locktest.IsError(t, l.Unlock(held), rlock.ErrLost)
	})
}
