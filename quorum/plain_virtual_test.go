package quorum_test

import (
	"context"
	"testing"
	"time"

	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/leader"
	"github.com/fencelock/fencelock/rlock"
)

// A lock without tokens works on a quorum too, also with a node that is down: re-entry, exclusion, a wait that a release ends, MaxHold.
func TestPlainLocks(t *testing.T) {
	virtual(t, 3, func(t *testing.T, s *site) {
		a, b := s.user(), s.user()
		a.down(1)
		b.down(1)
		mine, theirs := rlock.NewLock(a.Client, "l"), rlock.NewLock(b.Client, "l")
		held, err := mine.Lock(t.Context())
		locktest.NoError(t, err)
		_, err = theirs.TryLock(t.Context(), 0, 0)
		locktest.IsError(t, err, rlock.ErrNotAcquired)
		locktest.NoError(t, mine.Do(held, func(ctx context.Context) error {
			n, err := mine.HoldCount(ctx)
			locktest.Equal(t, "hold count", n, 2)
			return err
		}))
		waits := locktest.StartLock(func() (context.Context, error) { return theirs.Lock(t.Context()) })
		locktest.Sleep(2 * time.Minute) // renewed meanwhile
		locktest.NoError(t, mine.Unlock(held))
		got := <-waits
		locktest.NoError(t, got.Err)
		locktest.NoError(t, theirs.Unlock(got.Ctx))

		h, err := mine.Acquire(t.Context(), rlock.MaxHold(time.Minute))
		locktest.NoError(t, err)
		began := time.Now()
		next, err := theirs.Acquire(t.Context())
		locktest.NoError(t, err)
		if took := time.Since(began); took < time.Minute || took > time.Minute+100*time.Millisecond {
			t.Errorf("the next has it after %v", took)
		}
		locktest.IsError(t, h.Unlock(t.Context()), rlock.ErrMaxHold)
		locktest.NoError(t, next.Unlock(t.Context()))
	})
}

// A leader leads on a quorum, and the next one when it steps down.
func TestLeader(t *testing.T) {
	virtual(t, 3, func(t *testing.T, s *site) {
		campaign := func() <-chan *leader.Term {
			e, err := leader.New(s.user().lock("scheduler"))
			locktest.NoError(t, err)
			leads := make(chan *leader.Term, 1)
			go func() {
				term, err := e.Campaign(t.Context())
				locktest.NoError(t, err)
				leads <- term
			}()
			return leads
		}
		first := <-campaign()
		next := campaign()
		locktest.NothingComes(t, next, time.Hour, "a second leader")
		locktest.NoError(t, first.Err())
		locktest.NoError(t, first.StepDown(t.Context()))
		second := <-next
		if second.Token() <= first.Token() {
			t.Errorf("token %d after %d", second.Token(), first.Token())
		}
		locktest.NoError(t, second.StepDown(t.Context()))
	})
}
