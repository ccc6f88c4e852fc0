package memredis

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/alicebob/miniredis/v2/server"
)

// Tells answers INFO server, INFO replication and TIME as a real server does whose run has this id and began at this time, where its clock shows now.
// It tells whether the command was one of these: miniredis refuses to answer the first two, and its TIME is not to be set.
func Tells(c *server.Peer, cmd string, args []string, run string, began, now time.Time) bool {
	switch {
	case cmd == "INFO" && len(args) == 1 && strings.EqualFold(args[0], "server"):
		c.WriteBulk(fmt.Sprintf("# Server\r\nrun_id:%s\r\nuptime_in_seconds:%d\r\n", run, int(now.Sub(began).Seconds())))
	case cmd == "INFO" && len(args) == 1 && strings.EqualFold(args[0], "replication"):
		c.WriteBulk(fmt.Sprintf("# Replication\r\nrole:master\r\nmaster_replid:%x\r\n", run))
	case cmd == "TIME":
		c.WriteLen(2)
		c.WriteBulk(strconv.FormatInt(now.Unix(), 10))
		c.WriteBulk(strconv.Itoa(now.Nanosecond() / 1000))
	default:
		return false
	}
	return true
}
