package lockmetrics_test

import (
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/observe/lockmetrics"
)

// The oldest is the first that began of those that have not ended, in whatever order they began and ended, also where several have one key.
func TestOpen(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, _ *miniredis.Miniredis, _ *redis.Client) {
		var o lockmetrics.Open[string]
		now := time.Now()
		oldest := func(when string, want time.Duration) {
			t.Helper()
			locktest.Equal(t, when, o.Oldest(), want)
		}
		oldest("nothing", 0)
		o.Begin("a", now.Add(-2*time.Second))
		o.Begin("b", now.Add(-9*time.Second))
		o.Begin("b", now.Add(-9*time.Second))
		o.Begin("c", now.Add(-time.Second))
		oldest("four", 9*time.Second)
		o.End("b")
		oldest("one of two that have one key has ended", 9*time.Second)
		o.End("b")
		oldest("both have ended", 2*time.Second)
		o.End("late")
		oldest("one has ended before it began", 2*time.Second)
		o.Begin("late", now.Add(-time.Hour))
		oldest("it has begun", 2*time.Second)
		o.End("a")
		locktest.Sleep(time.Minute)
		oldest("a minute later", 61*time.Second)
		o.End("c")
		oldest("all have ended", 0)
	})
}
