package scripts

import (
	"context"
	"slices"
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
// each (renewals of up to a hundred locks as well), and block until go-redis has an answer or an error: the context ends neither a
// read nor a command that was sent. Errors are go-redis's own, some with a sentence added on what to do.
type Scripts struct {
	rdb    redis.UniversalClient
	single atomic.Bool // a lock a command: something between us and Redis refuses several slots in one
	lines  []*line

	confirm   *Confirmation // nil: none is asked for
	confirmed []*line       // of the ops that need one
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
	if len(holds) > maxScript || s.confirm != nil {
		s.renewMany(ctx, holds, false)
		return
	}
	reply, err := s.send(ctx, &renew, renewLine(holds))
	if len(holds) > 1 && s.refused(err) {
		s.Renew(ctx, holds)
		return
	}
	renewed(holds, reply, err, nil)
}

// maxScript bounds the renewals in one script: a hundred hold the server for about as long as five single commands of it.
const maxScript = 100

// renewMany is Renew of more holds than one script may carry, or of such as have to be confirmed: their scripts travel
// together. What a server answers that has not got the script, or that refuses several slots, is sent again by itself.
func (s *Scripts) renewMany(ctx context.Context, holds []Renewal, whole bool) {
	var on pipeliner = s.rdb
	if s.confirm != nil {
		var err error
		if on, err = s.node(ctx, holds[0].Keys); err != nil {
			s.astray(err)
			renewed(holds, nil, err, nil)
			return
		}
	}
	pipe := on.Pipeline()
	var sent []command
	for part := range slices.Chunk(holds, maxScript) {
		line := renewLine(part)
		if whole {
			line = renew.whole(line)
		}
		cmd := command{redis.NewCmd(ctx, line...)}
		sent = append(sent, cmd)
		_ = pipe.Process(ctx, cmd)
	}
	var doubt error
	if s.confirm != nil {
		_, doubt = s.exec(ctx, pipe)
	} else {
		_, _ = pipe.Exec(ctx) // each command has its own outcome
	}
	for part := range slices.Chunk(holds, maxScript) {
		reply, err := sent[0].Result()
		s.astray(err)
		sent = sent[1:]
		switch {
		case unknown(err) && !whole:
			s.renewMany(ctx, part, true)
		case len(part) > 1 && s.refused(err):
			s.Renew(ctx, part)
		default:
			renewed(part, reply, err, doubt)
		}
	}
}

// renewLine is the command that renews the holds. It forgets their outcomes.
func renewLine(holds []Renewal) []any {
	line := renew.line(len(holds), 2*len(holds))
	for i := range holds {
		holds[i].Err = nil
		line = append(line, holds[i].Keys.Lock)
	}
	var lease time.Duration
	var ms any // made once for leases that are equal: most are
	for i := range holds {
		if ms == nil || holds[i].Lease != lease {
			lease, ms = holds[i].Lease, holds[i].Lease.Milliseconds()
		}
		line = append(line, ms, holds[i].Field)
	}
	return line
}

// renewed sets the outcomes of the holds from what their script answered. doubt is why their extension is not to count,
// or nil.
func renewed(holds []Renewal, reply any, err, doubt error) {
	if err == nil {
		err = parseRenewed(reply, holds)
	}
	for i := range holds {
		switch hold := &holds[i]; {
		case err != nil:
			hold.Err = explain(hold.Keys, err)
		case hold.Err == nil && hold.Lease > 0:
			hold.Err = doubt
		}
	}
}
