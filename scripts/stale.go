package scripts

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"syscall"

	"github.com/redis/go-redis/v9"
)

// maxStale bounds how often Renew goes on with another connection.
const maxStale = 100

// Renew extends the leases of the holds, and sets the Err of each. With lease 0 it only asks whether the hold is there.
// Where the Redis client is a cluster client, all locks must be in one slot. Where a command for several locks is refused as
// a whole, Renew goes on lock by lock, in one round trip. It remembers that a proxy refuses several slots in one command.
//
// A connection that was idle while its server went away, or became a replica, fails at once. go-redis hands out all of these before it
// dials, and with TLS, or a dialer of the user's, it does not see that they have ended. So Renew repeats what fails like that, as often as
// there are idle connections: one attempt for each would take longer than the lease.
func (s *Scripts) Renew(ctx context.Context, holds []Renewal) {
	s.renewOnce(ctx, holds)
	if !allStale(holds) {
		return
	}
	for range min(s.rdb.PoolStats().IdleConns+1, maxStale) {
		if s.renewOnce(ctx, holds); ctx.Err() != nil || !allStale(holds) {
			return
		}
	}
}

func allStale(holds []Renewal) bool {
	return len(holds) > 0 && !slices.ContainsFunc(holds, func(r Renewal) bool { return !stale(r.Err) })
}

// stale tells that err is of a connection that its server has ended, or of one to a replica.
func stale(err error) bool {
	for _, ended := range []error{io.EOF, io.ErrUnexpectedEOF, net.ErrClosed, syscall.ECONNRESET, syscall.EPIPE} {
		if errors.Is(err, ended) {
			return true
		}
	}
	return redis.IsReadOnlyError(err)
}
