package rlock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/realtime"
	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/fencelock/fencelock/rlock"
)

// Two goroutines lock with the same context, the second while the first one's re-entry is on its way. They exclude each
// other: re-entry follows the context: one of them is in the section, the other one waits.
func TestP2_ReentriesAtOnceExcludeEachOther(t *testing.T) {
	s := newSite(t)
	l := fenced.NewLock(s.client(), "a")
	outer := takeToken(t, l, t.Context(), 1)
	f := s.on("level", redistest.HoldReply)
	entered := make(chan context.Context, 2)
	for range 2 {
		go func() {
			inner, _, err := l.LockAndGetToken(outer)
			if err != nil {
				t.Error(err)
			}
			entered <- inner
		}()
	}
	redistest.Await(t, bound, f.Fired(), "one of them is on its way")
	time.Sleep(50 * time.Millisecond) // for the other to get as far as it does; without it the test only sees less
	f.Release()
	first := <-entered
	select {
	case <-entered:
		t.Error("Inv1: both goroutines are in the section at once")
	case <-time.After(300 * time.Millisecond):
		s.wantCount("a", "2")
		locktest.NoError(t, l.Unlock(first))
		locktest.NoError(t, l.Unlock(<-entered))
	}
}

// The lock's key is gone, and Redis has said LOADING (it was restarted) before it says so: no copy of this unlock can
// have released anything, so the lock was lost. Unlock must not say nil.
func TestP12_UnlockThatWasRefusedAndThenFindsNothingIsALoss(t *testing.T) {
	s := newSite(t)
	l := fenced.NewLock(s.client(), "a")
	held := takeToken(t, l, t.Context(), 1)
	locktest.NoError(t, s.direct.Del(t.Context(), "a").Err())
	other := fenced.NewLock(s.other(), "a")
	next := takeToken(t, other, t.Context(), 2)
	s.on("unlock", redistest.Refuse("LOADING Redis is loading the dataset in memory"))
	if err := l.Unlock(held); !errors.Is(err, rlock.ErrLost) {
		t.Errorf("Unlock says %v: somebody else has the lock since before it was called", err)
	}
	locktest.NoError(t, other.Unlock(next))
}

// A re-entry asked for a longer lease and got no answer, but was executed: what has to be released behind is in Redis for
// that lease, not for the one of the outer level.
func TestP3_UnansweredReentryWithALongerLease(t *testing.T) {
	realtime.Test(t, "a lease of 3 s, and a call of 100 ms")
	s := newSite(t)
	c := newClient(t, redistest.Client(t, s.proxy.Addr(), func(o *redis.Options) { o.ReadTimeout = time.Second }))
	l := rlock.NewLock(c, "a")
	outer, err := l.LockLease(t.Context(), 3*time.Second)
	locktest.NoError(t, err)
	f := s.on("level", redistest.SwallowReplySilently)
	_, err = l.LockLease(withTimeout(t, outer, 100*time.Millisecond), time.Hour)
	locktest.IsError(t, err, context.DeadlineExceeded)
	redistest.Await(t, bound, f.Fired(), "the re-entry was executed")
	s.proxy.Refuse(true) // Redis is away for longer than the lease that the process knows of
	s.proxy.Cut()
	redistest.Await(t, bound, outer.Done(), "the lease is over")
	locktest.IsError(t, l.Unlock(outer), rlock.ErrLost)
	time.Sleep(1500 * time.Millisecond)
	s.proxy.Refuse(false)
	redistest.Eventually(t, 5*time.Second, func() bool { return s.count("a") == "" }, "it is released")
}

// An acquire arrives, and is answered, when its caller has given up a lease ago, while a release that came just before it
// is still under way: it is released like any other, not left for a lease of its own.
func TestP3_GhostThatIsAnsweredLate(t *testing.T) {
	realtime.Test(t, "a lease of 3 s")
	s := newSite(t)
	c := newClient(t, redistest.Client(t, s.proxy.Addr(), func(o *redis.Options) { o.ReadTimeout = 20 * time.Second }))
	const lease = 3 * time.Second
	ghost := s.on("acquire", redistest.Hold)
	began := time.Now()
	givesUp(t, ghost, func(ctx context.Context) error {
		_, err := rlock.NewLock(c, "a").TryLock(ctx, 0, lease)
		return err
	})
	redistest.Eventually(t, 10*time.Second, func() bool { return time.Since(began) > lease+200*time.Millisecond }, "a lease has passed")
	release := s.on("unlock", redistest.HoldReply)
	redistest.Await(t, bound, release.Fired(), "a release found nothing")
	released := s.released("a")
	ghost.Release()
	redistest.Await(t, bound, ghost.Done(), "the acquire has arrived")
	released()
}
