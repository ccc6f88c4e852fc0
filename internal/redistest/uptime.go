package redistest

import (
	"fmt"
	"strings"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"
)

// TellUptime makes a miniredis answer INFO server as a real server does whose
// run has this id and began at this time. Without it miniredis refuses to
// answer. Call it again for a restart.
func TellUptime(m *miniredis.Miniredis, run string, began time.Time) {
	m.Server().SetPreHook(func(c *server.Peer, cmd string, args ...string) bool {
		if cmd != "INFO" || len(args) != 1 || !strings.EqualFold(args[0], "server") {
			return false
		}
		c.WriteBulk(fmt.Sprintf("# Server\r\nrun_id:%s\r\nuptime_in_seconds:%d\r\n", run, int(time.Since(began).Seconds())))
		return true
	})
}
