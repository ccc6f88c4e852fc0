package rlock_test

import (
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/observe/locktrace"
	"github.com/fencelock/fencelock/rlock"
)

// The trace is told the word of each call, and at the end of the hold that of the call with which it began, also after a handoff.
func TestTraceOfLasting(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, _ *miniredis.Miniredis, rdb *redis.Client) {
		var tr tracer
		c, err := rlock.New(rdb, tr.option())
		locktest.NoError(t, err)
		defer func() { _ = c.Close() }()
		l := rlock.NewLock(c, "l")
		first := acquire(t, t.Context(), l)
		inner := acquire(t, first.Context(), l, rlock.Reenter(), rlock.Lasting("naps"))
		unlocked := make(chan struct{})
		next := locktest.Start(func() error {
			h, err := l.Acquire(t.Context(), rlock.Lasting("leads"))
			if err == nil {
				<-unlocked // each hold's end is told by the goroutine of its own Unlock
				err = h.Unlock(t.Context())
			}
			return err
		})
		locktest.Sleep(1)
		locktest.NoError(t, inner.Unlock(t.Context()))
		locktest.NoError(t, first.Unlock(t.Context()))
		close(unlocked)
		locktest.NoError(t, <-next)
		var words []string
		for _, e := range told[locktrace.AcquireDone](&tr) {
			words = append(words, e.Lasting+" by "+e.By.String())
		}
		for _, e := range told[locktrace.HoldDone](&tr) {
			words = append(words, e.Lasting)
		}
		locktest.DeepEqual(t, "words", words, []string{" by redis", "naps by reentry", "leads by handoff", "", "leads"})
		locktest.Equal(t, "the wait", one[locktrace.WaitStarted](t, &tr).Lasting, "leads")
	})
}
