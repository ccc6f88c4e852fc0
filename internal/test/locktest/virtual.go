package locktest

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/test/redistest"
)

// Virtual runs a test in virtual time, with a miniredis and a client of it. Where a hook of the test holds up a command, the server is silent
// (redistest.Unprobed). It is skipped where redistest.Virtual is.
func Virtual(t *testing.T, test func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client)) {
	t.Helper()
	redistest.Virtual(t, func(t *testing.T) {
		m, _ := redistest.Pipe(t)
		rdb := redistest.PipeClient(t, m, func(o *redis.Options) { o.Dialer = redistest.Unprobed(o.Dialer) })
		test(t, m, rdb)
		Sleep(time.Second) // a dial under way ends before its client is closed: in the bubble's end nothing would end the pause between two dials
	})
}

// Sleep lets virtual time pass. It returns when everything that is due then has happened.
func Sleep(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}
