package tell

import (
	"log/slog"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/redistest"
)

// P39: what an outbox is given it calls in order, also after a call that ends its goroutine. It has a goroutine while there is something to call.
func TestP39_OrderOfAnOutbox(t *testing.T) {
	redistest.Virtual(t, func(t *testing.T) {
		var o Outbox
		var called []int
		for i := range 5 {
			o.Add(func() {
				called = append(called, i)
				if i == 2 {
					runtime.Goexit()
				}
				time.Sleep(time.Minute)
			})
		}
		locktest.Sleep(time.Hour)
		locktest.DeepEqual(t, "called", called, []int{0, 1, 2, 3, 4})
		locktest.Equal(t, "it runs", o.running, false)
		o.Add(func() { called = nil })
		o.Flush()
		locktest.Equal(t, "called", len(called), 0)
	})
}

// P39: calls that wait for one that does not return are bounded, a flush is too, and the log says how many lines were lost.
func TestP39_AFullOutbox(t *testing.T) {
	redistest.Virtual(t, func(t *testing.T) {
		var all locktest.Log
		log := slog.New(newThrottle(func() slog.Handler { return &all }, slog.LevelInfo))
		out := &log.Handler().(*throttle).out
		end := make(chan struct{})
		out.Add(func() { <-end })
		synctest.Wait()
		for out.Add(func() {}) {
		}
		locktest.Equal(t, "calls that wait", len(out.calls), maxCalls)
		log.Warn("one")
		log.Warn("two")
		began := time.Now()
		out.Flush()
		locktest.Equal(t, "a flush took", time.Since(began), flushTime)
		close(end)
		locktest.Sleep(time.Second)
		log.Warn("three")
		log.Warn("four")
		locktest.Sleep(time.Second)
		locktest.Equal(t, "the log", all.String(), "three lines lost before=2\nfour")
		locktest.Sleep(Every)
	})
}
