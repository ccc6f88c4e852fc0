package redistest

import (
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"

	"github.com/fencelock/fencelock/internal/test/memredis"
)

// TellUptime makes a miniredis answer INFO server as a real server does whose
// run has this id and began at this time. Without it miniredis refuses to
// answer. Call it again for a restart.
func TellUptime(m *miniredis.Miniredis, run string, began time.Time) {
	TellClock(m, run, began, 0)
}

// TellClock is TellUptime for a server whose wall clock is so far ahead of the
// test's now, and may have been another when the run began.
func TellClock(m *miniredis.Miniredis, run string, began time.Time, ahead time.Duration) {
	m.Server().SetPreHook(func(c *server.Peer, cmd string, args ...string) bool {
		return memredis.Tells(c, cmd, args, run, began, time.Now().Add(ahead))
	})
}
