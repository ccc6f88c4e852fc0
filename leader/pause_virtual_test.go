package leader_test

import (
	"context"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/fencelock/fencelock/leader"
	"github.com/fencelock/fencelock/rlock"
)

// loseTerms has Run lead for so long each time, and then lose the term. It returns when each of so many terms began, from the first one on.
func loseTerms(t *testing.T, e *leader.Election, m *miniredis.Miniredis, terms int, lasts time.Duration) (began []time.Duration) {
	t.Helper()
	first := time.Now()
	locktest.NoError(t, e.Run(t.Context(), func(ctx context.Context, term *leader.Term) error {
		if began = append(began, time.Since(first)); len(began) == terms {
			return nil
		}
		time.Sleep(lasts)
		m.Del("scheduler")
		<-ctx.Done()
		return ctx.Err()
	}))
	return began
}

// A process that loses a term, as one that was paused for longer than its lease, leads again at once where nobody else campaigns.
func TestNoPauseWhereNobodyElseCampaigns(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		e, _ := process(t, rdb, leader.WithPause(time.Hour))
		began := loseTerms(t, e, m, 2, 2*time.Hour)
		if gap := began[1] - 2*time.Hour; gap < 0 || gap > 11*time.Second { // a renewal finds the loss
			t.Errorf("it leads again %v after the loss", gap)
		}
	})
}

// Where terms end again and again the process pauses after each.
func TestPauseWhereTermsAreShort(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		e, _ := process(t, rdb, leader.WithPause(time.Minute))
		began := loseTerms(t, e, m, 5, time.Second)
		for i := 1; i < len(began); i++ {
			if gap := began[i] - began[i-1]; gap < time.Minute {
				t.Errorf("term %d began %v after the one before", i+1, gap)
			}
		}
	})
}

// A term that hangs ends with WithMaxTerm, and another process leads at once.
func TestMaxTerm(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		hangs, lock := process(t, rdb, leader.WithMaxTerm(time.Hour))
		next, _ := process(t, redistest.PipeClient(t, m))
		first, err := hangs.Campaign(t.Context())
		locktest.NoError(t, err)
		began, other := time.Now(), campaign(t, next)
		second := <-other
		locktest.Equal(t, "the other leads after", time.Since(began), time.Hour)
		locktest.IsError(t, first.Err(), rlock.ErrMaxHold)
		locktest.NoError(t, second.StepDown(t.Context()))
		_, err = leader.New(lock, leader.WithMaxTerm(0))
		locktest.ErrorSays(t, err, "WithMaxTerm(0s)")
	})
}

// Where another process campaigns that one leads, and the loser pauses.
func TestPauseWhereAnotherCampaigns(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		a, lock := process(t, rdb, leader.WithPause(time.Minute))
		b, _ := process(t, redistest.PipeClient(t, m))
		first, err := a.Campaign(t.Context())
		locktest.NoError(t, err)
		locktest.Sleep(time.Hour)
		other := campaign(t, b)
		locktest.Sleep(time.Minute)
		_, err = lock.ForceUnlock(t.Context())
		locktest.NoError(t, err)
		locktest.IsError(t, first.StepDown(t.Context()), rlock.ErrLost)
		began := time.Now()
		again := campaign(t, a)
		second := <-other
		if took := time.Since(began); took > 100*time.Millisecond {
			t.Errorf("the other leads after %v", took)
		}
		locktest.NothingComes(t, again, 30*time.Second, "a term of the loser")
		locktest.NoError(t, second.StepDown(t.Context()))
		third := <-again
		locktest.Equal(t, "the loser leads after", time.Since(began), time.Minute)
		locktest.NoError(t, third.StepDown(t.Context()))
	})
}

// A term that began after a loss, and was given up, has no pause behind it, whenever the lost one is stepped down from.
func TestALossIsPausedForOnce(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		e, lock := process(t, rdb)
		first, err := e.Campaign(t.Context())
		locktest.NoError(t, err)
		locktest.Sleep(time.Hour)
		_, err = lock.ForceUnlock(t.Context())
		locktest.NoError(t, err)
		began := time.Now()
		second, err := e.Campaign(t.Context())
		locktest.NoError(t, err)
		locktest.IsError(t, first.StepDown(t.Context()), rlock.ErrLost)
		locktest.NoError(t, second.StepDown(t.Context()))
		third, err := e.Campaign(t.Context())
		locktest.NoError(t, err)
		locktest.Equal(t, "three terms took", time.Since(began), 0)
		locktest.NoError(t, third.StepDown(t.Context()))
	})
}
