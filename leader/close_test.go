package leader_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/fencelock/fencelock/leader"
	"github.com/fencelock/fencelock/rlock"
)

// electionOf is process, with its lock and its client.
func electionOf(t *testing.T, rdb *redis.Client, opts ...leader.Option) (*leader.Election, *fenced.Lock, *rlock.Client) {
	t.Helper()
	client, err := rlock.New(rdb)
	locktest.NoError(t, err)
	t.Cleanup(func() { _ = client.Close() })
	lock := fenced.NewLock(client, "s")
	e, err := leader.New(lock, opts...)
	locktest.NoError(t, err)
	return e, lock, client
}

// The pause after a loss ends with the context of the campaign, and with Close.
func TestCloseEndsThePauseOfACampaign(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		a, l, c := electionOf(t, rdb, leader.WithPause(time.Hour))
		term, err := a.Campaign(t.Context())
		locktest.NoError(t, err)
		_, err = l.ForceUnlock(t.Context())
		locktest.NoError(t, err)
		locktest.IsError(t, term.StepDown(t.Context()), rlock.ErrLost)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		_, err = a.Campaign(ctx)
		locktest.IsError(t, err, context.DeadlineExceeded)
		locktest.Equal(t, "took", time.Since(began), time.Second)
		done := locktest.Start(func() error { _, err := a.Campaign(t.Context()); return err })
		synctest.Wait()
		began = time.Now()
		locktest.NoError(t, c.Close())
		err = <-done
		locktest.IsError(t, err, rlock.ErrClosed)
		if took := time.Since(began); took > time.Minute {
			t.Errorf("Campaign returned %v after Close: %v", took, err)
		}
	})
}

// So does the pause of Run, with Shutdown.
func TestShutdownEndsThePauseOfRun(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		a, l, c := electionOf(t, rdb, leader.WithPause(time.Hour))
		done := locktest.Start(func() error {
			return a.Run(t.Context(), func(ctx context.Context, term *leader.Term) error {
				_, _ = l.ForceUnlock(t.Context())
				<-ctx.Done()
				return nil
			})
		})
		synctest.Wait()
		began := time.Now()
		locktest.NoError(t, c.Shutdown(t.Context()))
		locktest.IsError(t, <-done, rlock.ErrClosed)
		if took := time.Since(began); took > time.Minute {
			t.Errorf("Run returned %v after Shutdown", took)
		}
	})
}

// A lock that can never be taken is an error of New.
func TestALockThatCannotBeTaken(t *testing.T) {
	client, err := rlock.New(redistest.New(t))
	locktest.NoError(t, err)
	defer func() { _ = client.Close() }()
	for says, lock := range map[string]*fenced.Lock{
		"make it with NewLock": {},
		"name is empty":        fenced.NewLock(client, ""),
		"client is nil":        fenced.NewLock(nil, "x"),
		"several would lead":   fenced.NewRWLock(client, "x").Read(),
		"counter's expiry":     fenced.NewLock(client, "x", fenced.WithCounterExpiry(1)),
	} {
		_, err := leader.New(lock)
		locktest.ErrorSays(t, err, "leader: New", says)
	}
}

// A campaign that waits while its process loses another term leads after the pause, and not at once.
func TestThePauseIsTheProcesss(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		e, l, _ := electionOf(t, rdb, leader.WithPause(time.Minute))
		term, err := e.Campaign(t.Context())
		locktest.NoError(t, err)
		began := time.Now()
		second := locktest.Start(func() error {
			term, err := e.Campaign(t.Context())
			if err != nil {
				return err
			}
			if took := time.Since(began); took < time.Minute {
				t.Errorf("the second campaign of the process leads %v after the loss", took)
			}
			return term.StepDown(t.Context())
		})
		synctest.Wait()
		_, err = l.ForceUnlock(t.Context())
		locktest.NoError(t, err)
		locktest.IsError(t, term.StepDown(t.Context()), rlock.ErrLost)
		locktest.NoError(t, <-second)
	})
}

// During Shutdown a term by turns ends at once where others wait, and Run with it.
func TestShutdownWhileRunLeads(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		e, _, c := electionOf(t, rdb, leader.WithTurns(time.Minute))
		_, ol, _ := electionOf(t, redistest.PipeClient(t, m))
		done := locktest.Start(func() error {
			return e.Run(t.Context(), func(ctx context.Context, term *leader.Term) error { <-ctx.Done(); return ctx.Err() })
		})
		synctest.Wait()
		began := time.Now()
		down := locktest.Start(func() error { return c.Shutdown(t.Context()) })
		h, err := ol.Acquire(t.Context())
		locktest.NoError(t, err)
		locktest.IsError(t, <-done, rlock.ErrClosed)
		locktest.NoError(t, <-down)
		if took := time.Since(began); took > time.Millisecond { // Close may end a pause before a command is repeated
			t.Errorf("it took %v", took)
		}
		locktest.NoError(t, h.Unlock(t.Context()))
	})
}
