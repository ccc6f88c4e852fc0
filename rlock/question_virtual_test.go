package rlock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/rlock"
)

// questions are the calls that ask Redis who has the lock.
var questions = map[string]func(ctx context.Context, l *rlock.Lock) error{
	"IsLocked":    func(ctx context.Context, l *rlock.Lock) error { _, err := l.IsLocked(ctx); return err },
	"IsHeld":      func(ctx context.Context, l *rlock.Lock) error { _, err := l.IsHeld(ctx); return err },
	"HoldCount":   func(ctx context.Context, l *rlock.Lock) error { _, err := l.HoldCount(ctx); return err },
	"TTL":         func(ctx context.Context, l *rlock.Lock) error { _, err := l.TTL(ctx); return err },
	"ForceUnlock": func(ctx context.Context, l *rlock.Lock) error { _, err := l.ForceUnlock(ctx); return err },
}

// Inv12: a question with a context that has ended says why that has ended, and asks nobody. ForceUnlock leaves the lock alone.
func TestInv12_QuestionsOfAnEndedContext(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		spy := locktest.SpyOn(rdb)
		l := rlock.NewLock(newClient(t, rdb), "l")
		held := take(t, l, t.Context())
		why := errors.New("the user's reason")
		ended, cancel := context.WithCancelCause(held)
		cancel(why)
		spy.Reset()
		for name, ask := range questions {
			t.Log(name)
			locktest.IsError(t, ask(ended, l), context.Canceled, why)
		}
		locktest.Equal(t, "commands", spy.Commands(), 0)
		locktest.NoError(t, held.Err())
		locktest.NoError(t, l.Unlock(held))
	})
}

// Inv6, Inv12: a question that gets no answer ends with its context, and says why that has ended.
func TestInv6_QuestionsEndWithTheirContext(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		l := rlock.NewLock(newClient(t, rdb), "l")
		held := take(t, l, t.Context())
		why := errors.New("the user's reason")
		thaw := make(chan struct{})
		spy := locktest.SpyOn(rdb)
		spy.Wrap(func(_ []string, next func() error) error {
			<-thaw
			return next()
		})
		for name, ask := range questions {
			t.Log(name)
			ctx, cancel := context.WithTimeoutCause(held, time.Second, why)
			began := time.Now()
			locktest.IsError(t, ask(ctx, l), context.DeadlineExceeded, why)
			locktest.Equal(t, name+" took", time.Since(began), time.Second)
			cancel()
		}
		close(thaw)
		locktest.Sleep(time.Second)
		locktest.NoError(t, l.Unlock(held))
	})
}
