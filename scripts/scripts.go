package scripts

import (
	"context"
	"strings"
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

// Scripts calls the scripts on one Redis client. Its methods send one command each (renewals of many locks as well),
// are not repeated, and block until go-redis has an answer or an error: the context ends neither a read nor a command
// that was sent. Errors are go-redis's own, some with a sentence added on what to do.
type Scripts struct {
	rdb    redis.UniversalClient
	single atomic.Bool // renew lock by lock: something between us and Redis refuses several slots in a command
}

// New returns the scripts on rdb. It sends nothing.
func New(rdb redis.UniversalClient) *Scripts { return &Scripts{rdb: rdb} }

// Answer is what acquire and level say.
type Answer struct {
	Held  bool          // the hold has the lock
	Token int64         // its token, 0 without a counter
	TTL   time.Duration // where another holder has it: how long that lasts at most, or NoExpiry
}

// Acquire takes the lock for the hold of this field, or confirms that it has it. With fenced it takes a token.
func (s *Scripts) Acquire(ctx context.Context, keys Keys, fenced bool, field string, lease time.Duration) (Answer, error) {
	reply, err := s.run(ctx, acquire, withCounter(keys, fenced), lease.Milliseconds(), field)
	if err != nil {
		return Answer{}, explain(keys, err)
	}
	return parseAnswer(reply)
}

// Level sets the count of a hold, as its change number op. A re-entry names its lease, and asks for a token with
// fenced; an inner unlock has lease 0. Held is false where the hold is gone.
func (s *Scripts) Level(ctx context.Context, keys Keys, fenced bool, field string, lease time.Duration, count int, op int64) (Answer, error) {
	reply, err := s.run(ctx, level, withCounter(keys, fenced), lease.Milliseconds(), field, count, op)
	if err != nil {
		return Answer{}, explain(keys, err)
	}
	return parseAnswer(reply)
}

func withCounter(keys Keys, fenced bool) []string {
	if fenced {
		return []string{keys.Lock, keys.Token}
	}
	return []string{keys.Lock}
}

// Unlock releases the hold of this field and tells the waiters, by a sharded message if sharded. False: the hold was
// not there.
func (s *Scripts) Unlock(ctx context.Context, keys Keys, field string, sharded bool) (bool, error) {
	publish := "PUBLISH"
	if sharded {
		publish = "SPUBLISH"
	}
	reply, err := s.run(ctx, unlock, []string{keys.Lock}, field, keys.Channel, publish)
	if err != nil {
		return false, explain(keys, err)
	}
	return parseReleased(reply)
}

// State is what inspect says.
type State struct {
	Locked bool
	Count  int           // the asked hold's count
	TTL    time.Duration // or NoExpiry, NoKey
	Field  string        // the hold that has the lock
}

// Inspect asks who has the lock, and for the count of the hold of this field.
func (s *Scripts) Inspect(ctx context.Context, keys Keys, field string) (State, error) {
	reply, err := s.run(ctx, inspect, []string{keys.Lock}, field)
	if err != nil {
		return State{}, explain(keys, err)
	}
	return parseState(reply)
}

// A Renewal is one hold whose lease is to be extended.
type Renewal struct {
	Keys  Keys
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
	reply, err := s.run(ctx, renew, keys, args...)
	if err != nil && len(holds) > 1 && strings.Contains(err.Error(), "CROSSSLOT") {
		s.single.Store(true)
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
