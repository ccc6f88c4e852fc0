package quorum_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/observe/locktrace"
	"github.com/fencelock/fencelock/rlock"
)

// A client of a quorum tells its trace what one of a single Redis does, and of each node whether it hears it.
func TestTrace(t *testing.T) {
	virtual(t, 3, func(t *testing.T, s *site) {
		var mu sync.Mutex
		var acquires []locktrace.AcquireDone
		var ends []locktrace.HoldDone
		var heard []locktrace.SubscriptionChanged
		u := s.user(rlock.WithTrace(&locktrace.Trace{
			AcquireDone:         func(e locktrace.AcquireDone) { mu.Lock(); defer mu.Unlock(); acquires = append(acquires, e) },
			HoldDone:            func(e locktrace.HoldDone) { mu.Lock(); defer mu.Unlock(); ends = append(ends, e) },
			SubscriptionChanged: func(e locktrace.SubscriptionChanged) { mu.Lock(); defer mu.Unlock(); heard = append(heard, e) },
		}))
		other := s.user().lock("l")
		theirs, _, err := other.LockAndGetToken(t.Context())
		locktest.NoError(t, err)
		l := u.lock("l")
		got := locktest.StartLock(func() (context.Context, error) { return locktest.NoToken(l.LockAndGetToken(t.Context())) })
		locktest.Sleep(2 * time.Second)
		locktest.NoError(t, other.Unlock(theirs))
		r := <-got
		locktest.NoError(t, r.Err)
		locktest.Sleep(time.Second)
		locktest.NoError(t, l.Unlock(r.Ctx))
		mu.Lock()
		defer mu.Unlock()
		locktest.Equal(t, "acquires", len(acquires), 1)
		locktest.Equal(t, "ends", len(ends), 1)
		if e := acquires[0]; !e.Contended || e.By != locktrace.FromRedis || e.Token == 0 || e.Hold != ends[0].Hold || e.Token != ends[0].Token || e.Attempts < 2 {
			t.Errorf("the acquire: %+v", e)
		}
		if e := ends[0]; e.End != locktrace.Unlocked || e.Held != time.Second || e.Client != acquires[0].Client {
			t.Errorf("the end: %+v", e)
		}
		for _, e := range heard {
			if !e.Up || e.Node == "" {
				t.Errorf("a subscription: %+v", e)
			}
		}
		if len(heard) == 0 || len(heard) > 3 {
			t.Errorf("%d nodes are heard", len(heard))
		}
	})
}
