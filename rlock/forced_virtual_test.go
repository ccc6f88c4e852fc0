package rlock_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
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

// A lateContext is one whose Err takes a second, once, when the lock is taken.
type lateContext struct {
	context.Context
	taken func() bool
	late  *sync.Once
}

func (c lateContext) Err() error {
	if c.taken() {
		c.late.Do(func() { time.Sleep(time.Second) })
	}
	return c.Context.Err()
}

// Inv1: a call that has got the lock, and learns that late, has lost it where the lock was forced open meanwhile and another
// call of its client has taken it. That one has not.
func TestInv1_ForcedOpenBeforeItBegins(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		l, stranger := rlock.NewLock(newClient(t, rdb), "l"), rlock.NewLock(newClient(t, rdb), "l")
		late := locktest.StartLock(func() (context.Context, error) {
			return l.Lock(lateContext{t.Context(), func() bool { return m.Exists("l") }, new(sync.Once)})
		})
		locktest.Sleep(time.Millisecond)
		freed, err := stranger.ForceUnlock(t.Context())
		locktest.NoError(t, err)
		locktest.Equal(t, "freed", freed, true)
		held, err := l.TryLock(t.Context(), 0, 0)
		locktest.NoError(t, err)
		r := <-late
		locktest.NoError(t, r.Err)
		locktest.NoError(t, held.Err())
		locktest.IsError(t, r.Ctx.Err(), rlock.ErrLost)
		locktest.IsError(t, l.Unlock(r.Ctx), rlock.ErrLost)
		wantLocked(t, l, true)
		next := locktest.StartLock(func() (context.Context, error) { return l.Lock(t.Context()) })
		locktest.Sleep(time.Millisecond)
		locktest.NoError(t, l.Unlock(held))
		r = <-next
		locktest.NoError(t, r.Err)
		locktest.NoError(t, l.Unlock(r.Ctx))
	})
}

// Inv1: an answer that comes late says who has the lock, where the one before is releasing it still.
func TestInv1_TakenBeforeTheReleaseIsAnswered(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		spy := locktest.SpyOn(rdb)
		l := rlock.NewLock(newClient(t, rdb), "l")
		locktest.NoError(t, l.Unlock(take(t, l, t.Context()))) // the scripts are loaded
		first := true
		spy.Wrap(func(ops []string, next func() error) error {
			switch {
			case slices.Contains(ops, "unlock"): // its answer is late
				err := next()
				time.Sleep(time.Second)
				return err
			case slices.Contains(ops, "acquire") && first:
				first = false
				time.Sleep(100 * time.Millisecond)
			}
			return next()
		})
		slow := locktest.StartLock(func() (context.Context, error) { return l.Lock(t.Context()) })
		locktest.Sleep(time.Millisecond)
		held, err := l.TryLock(t.Context(), 0, 0)
		locktest.NoError(t, err)
		unlocked := locktest.Start(func() error { return l.Unlock(held) })
		r := <-slow
		locktest.NoError(t, r.Err)
		locktest.NoError(t, r.Ctx.Err())
		locktest.NoError(t, <-unlocked)
		locktest.NoError(t, l.Unlock(r.Ctx))
	})
}
