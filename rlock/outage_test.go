package rlock_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/fencelock/fencelock/rlock"
)

// While Redis answers none of 200 callers the log says so, now and then that it goes on, and once when it is over, with how long it was
// away.
func TestOutageIsLogged(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		var log locktest.Log
		client := newClient(t, rdb, rlock.WithLogger(log.Logger()))
		var all sync.WaitGroup
		var stop atomic.Bool
		defer all.Wait()
		defer stop.Store(true)
		for i := range 200 {
			all.Go(func() {
				for ; !stop.Load(); time.Sleep(time.Second) {
					ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
					_ = rlock.NewLock(client, fmt.Sprint("l", i%50)).Do(ctx, func(context.Context) error { return nil })
					cancel()
				}
			})
		}
		locktest.Sleep(5 * time.Second)
		locktest.Equal(t, "lines while all is well", log.String(), "")
		m.SetError("LOADING Redis is loading the dataset in memory")
		for n, after := range []time.Duration{time.Second, 10 * time.Second, 20 * time.Second, 29 * time.Second} { // the first call comes after a second
			locktest.Sleep(after)
			locktest.Equal(t, "lines that it does not answer", log.Count("does not answer"), n)
		}
		m.SetError("")
		locktest.Sleep(20 * time.Second)
		locktest.Equal(t, "lines that it answers again", log.Count("answers again away=59"), 1)
		locktest.Equal(t, "lines of answers", log.Count("answer"), 4)
	})
}

// A server that stands still is one that does not answer.
func TestOutageOfAFrozenServer(t *testing.T) {
	server := redistest.Real(t)
	var log locktest.Log
	rdb := server.Client(func(o *redis.Options) { o.ReadTimeout = 300 * time.Millisecond })
	l := rlock.NewLock(newClient(t, rdb, rlock.WithLogger(log.Logger())), "l")
	locktest.NoError(t, l.Unlock(take(t, l, t.Context())))
	server.Freeze()
	wait := locktest.Start(func() error {
		held, err := l.Lock(t.Context())
		return errors.Join(err, l.Unlock(held))
	})
	redistest.Eventually(t, time.Minute, func() bool { return log.Count("does not answer") == 1 }, "the log says that it does not answer")
	locktest.Equal(t, "lines of its end", log.Count("answers again"), 0)
	server.Thaw()
	locktest.NoError(t, <-wait)
	redistest.Eventually(t, time.Minute, func() bool { return log.Count("answers again") == 1 }, "the log says that it answers again")
}
