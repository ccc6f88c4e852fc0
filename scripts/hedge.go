package scripts

import (
	"context"
	"errors"
	"slices"
	"time"
)

const (
	// hedges is how often Renew sends copies of a renewal that has no answer: 1, 2, 4 and 8 of them.
	hedges = 4
	// maxCopies bounds the copies of all renewals of a Scripts that are under way.
	maxCopies = 16
)

// Renew extends the leases of the holds, and sets the Err of each. With lease 0 it only asks whether the hold is there.
// Where the Redis client is a cluster client, all locks must be in one slot. Where a command for several locks is refused as
// a whole, Renew goes on lock by lock, in one round trip. It remembers that a proxy refuses several slots in one command.
//
// A connection whose other end is gone without a word, as behind a firewall that has forgotten its connections, fails only
// after the ReadTimeout of go-redis, which hands out all of its idle connections before it dials. So where ctx has a
// deadline, Renew does not wait for one connection alone: at each fifth of the time it sends copies of the renewal, twice as
// many as before, but at most one more than connections are idle. The first answer counts. Redis may execute several of the
// copies: none shortens a lease. Such requests are called hedged (Dean and Barroso, The Tail at Scale, 2013).
func (s *Scripts) Renew(ctx context.Context, holds []Renewal) {
	deadline, bounded := ctx.Deadline()
	if !bounded || len(holds) == 0 {
		s.renewPastStale(ctx, holds)
		return
	}
	outcomes := make(chan []Renewal, 1<<hedges) // of all that are sent: nobody waits for the late ones
	underWay := 0
	send := func(over func()) {
		underWay++
		own := slices.Clone(holds)
		go func() {
			s.renewPastStale(ctx, own)
			over()
			outcomes <- own
		}()
	}
	send(func() {})
	copies := time.NewTicker(max(time.Until(deadline)/(hedges+1), s.confirmTime(), 1))
	defer copies.Stop()
	for next := 1; ; {
		select {
		case outcome := <-outcomes:
			underWay--
			if copy(holds, outcome); underWay == 0 || slices.ContainsFunc(holds, Renewal.decided) {
				return
			}
		case <-copies.C:
			if next == 1<<hedges || ctx.Err() != nil {
				continue
			}
			for range min(next, s.mayBeStale()) {
				select {
				case s.copies <- struct{}{}:
					send(func() { <-s.copies })
				default:
				}
			}
			next *= 2
		}
	}
}

// decided tells that Redis has said what became of the renewal.
func (r Renewal) decided() bool {
	return r.Err == nil || errors.Is(r.Err, ErrGone) || errors.Is(r.Err, ErrUnconfirmed)
}

// confirmTime returns how long a renewal waits for its confirmation; 0 where none is asked for.
func (s *Scripts) confirmTime() time.Duration {
	if s.confirm == nil {
		return 0
	}
	return s.confirm.Timeout
}
