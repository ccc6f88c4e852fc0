package redistest

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"
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
		now := time.Now().Add(ahead)
		switch {
		case cmd == "INFO" && len(args) == 1 && strings.EqualFold(args[0], "server"):
			c.WriteBulk(fmt.Sprintf("# Server\r\nrun_id:%s\r\nuptime_in_seconds:%d\r\n", run, int(now.Sub(began).Seconds())))
		case cmd == "TIME":
			c.WriteLen(2)
			c.WriteBulk(strconv.FormatInt(now.Unix(), 10))
			c.WriteBulk(strconv.Itoa(now.Nanosecond() / 1000))
		default:
			return false
		}
		return true
	})
}
