package scripts

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// NoExpiry is the TTL of a key that does not expire.
const NoExpiry = time.Duration(-1)

// NoKey is the TTL of a key that is not there.
const NoKey = time.Duration(-2)

// maxSingle bounds the renewals under way where each lock needs a command of its own: a hundred of them then take ten
// round trips.
const maxSingle = 10

// Scripts calls the scripts on one Redis client. What it sends is not repeated. Its methods, but Send, send one command
// each (renewals of many locks as well), and block until go-redis has an answer or an error: the context ends neither a
// read nor a command that was sent. Errors are go-redis's own, some with a sentence added on what to do.
type Scripts struct {
	rdb    redis.UniversalClient
	single atomic.Bool // a lock a command: something between us and Redis refuses several slots in one
	lines  []*line
}

// New returns the scripts on rdb. It sends nothing.
func New(rdb redis.UniversalClient) *Scripts {
	s := &Scripts{rdb: rdb}
	s.lines = newLines(s)
	return s
}

// State is what inspect says.
type State struct {
	Locked bool
	Count  int           // the asked hold's count
	TTL    time.Duration // or NoExpiry, NoKey
	Field  string        // the hold that has the lock
}

// Inspect asks who has the lock, and for the count of the hold of this field.
func (s *Scripts) Inspect(ctx context.Context, keys *Keys, field string) (State, error) {
	reply, err := s.run(ctx, &inspect, []string{keys.Lock}, field)
	if err != nil {
		return State{}, explain(keys, err)
	}
	return parseState(reply)
}

// A Renewal is one hold whose lease is to be extended.
type Renewal struct {
	Keys  *Keys
	Field string
	Lease time.Duration
	Err   error // set by Renew: nil, ErrGone, or why it is not known
}

// Renew extends the leases of the holds and sets each one's Err. All locks are in one slot where rdb is a cluster
// client. Where a proxy refuses several slots in one command, it goes on lock by lock, and remembers that.
func (s *Scripts) Renew(ctx context.Context, holds []Renewal) {
	if s.single.Load() && len(holds) > 1 {
		var each sync.WaitGroup
		room := make(chan struct{}, maxSingle)
		for i := range holds {
			select {
			case room <- struct{}{}:
			case <-ctx.Done():
				holds[i].Err = ctx.Err()
				continue
			}
			each.Go(func() {
				s.Renew(ctx, holds[i:i+1])
				<-room
			})
		}
		each.Wait()
		return
	}
	keys := make([]string, 0, len(holds))
	args := make([]any, 0, 2*len(holds))
	for i := range holds {
		holds[i].Err = nil
		keys = append(keys, holds[i].Keys.Lock)
		args = append(args, holds[i].Lease.Milliseconds(), holds[i].Field)
	}
	reply, err := s.run(ctx, &renew, keys, args...)
	if len(holds) > 1 && s.refused(err) {
		s.Renew(ctx, holds)
		return
	}
	if err == nil {
		err = parseRenewed(reply, holds)
	}
	if err != nil {
		for i := range holds {
			holds[i].Err = explain(holds[i].Keys, err)
		}
	}
}
