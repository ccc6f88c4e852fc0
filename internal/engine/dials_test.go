package engine

import (
	"runtime"
	"testing"
	"time"
	"weak"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/redistest"
)

// Inv9: nothing is kept of a client of Redis that is gone.
func TestInv9_NothingIsKeptOfAClientOfRedis(t *testing.T) {
	key := func() weak.Pointer[redis.Client] {
		rdb := redis.NewClient(&redis.Options{Protocol: 2})
		first := dialsOf(rdb)
		locktest.Equal(t, "the client of Redis has one hook", dialsOf(rdb), first)
		locktest.NoError(t, rdb.Close())
		return weak.Make(rdb)
	}()
	redistest.Eventually(t, time.Minute, func() bool {
		runtime.GC()
		hooked.Lock()
		defer hooked.Unlock()
		_, kept := hooked.of[key]
		return !kept
	}, "the hook is forgotten")
}
