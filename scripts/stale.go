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

// maxStale bounds how often renewPastStale goes on with another connection.
const maxStale = 100

// renewPastStale is Renew by one attempt, and by its repeats where the connection was stale. A connection that was idle while its server went
// away, or became a replica, fails at once. go-redis hands out all of these before it dials, and with TLS, or a dialer of the user's, it does
// not see that they have ended. So what fails like that is repeated as often as there are idle connections: one attempt for each would take
// longer than the lease.
func (s *Scripts) renewPastStale(ctx context.Context, holds []Renewal) {
	s.renewOnce(ctx, holds)
	if !allStale(holds) {
		return
	}
	for range s.mayBeStale() {
		if s.renewOnce(ctx, holds); ctx.Err() != nil || !allStale(holds) {
			return
		}
	}
}

// mayBeStale returns how often a command may find a connection that has ended, before go-redis dials: as often as connections are idle.
// It is maxStale at most.
func (s *Scripts) mayBeStale() int { return min(idleConns(s.rdb)+1, maxStale) }

// SendAgain tells whether what a batch has sent in vain is to be sent again at once: err says that the connection was idle while its server
// went away, or became a replica, and there may be more of these than the tries that were made.
func (s *Scripts) SendAgain(err error, tries int) bool { return Stale(err) && tries <= s.mayBeStale() }

func allStale(holds []Renewal) bool {
	return len(holds) > 0 && !slices.ContainsFunc(holds, func(r Renewal) bool { return !Stale(r.Err) })
}

// Stale tells that err is of a connection that its server has ended, or of one to a replica: the server may be another one from now on.
func Stale(err error) bool { return Ended(err) || redis.IsReadOnlyError(err) }

// Ended tells that err is of a connection that its server has ended.
func Ended(err error) bool {
	for _, ended := range []error{io.EOF, io.ErrUnexpectedEOF, net.ErrClosed, syscall.ECONNRESET, syscall.EPIPE} {
		if errors.Is(err, ended) {
			return true
		}
	}
	return false
}
