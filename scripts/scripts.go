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

// Scripts calls the scripts on one Redis client. What it sends is not repeated. Its methods, but Send, send one command
// each (renewals of up to a hundred locks as well), and block until go-redis has an answer or an error: the context ends neither a
// read nor a command that was sent. Errors are go-redis's own, some with a sentence added on what to do.
type Scripts struct {
	rdb      redis.UniversalClient
	cluster  *redis.ClusterClient // rdb, if it is one
	known    atomic.Bool          // the cluster client knows its nodes
	single   atomic.Bool          // a lock a command: something between us and Redis refuses several slots in one
	batchers *batchers
	spare    sync.Pool // of *batch that are over

	confirm   *Confirmation // nil: none is asked for
	confirmed *batchers     // of the ops that need one
}

// New returns the scripts on rdb. It sends nothing.
func New(rdb redis.UniversalClient) *Scripts {
	s := &Scripts{rdb: rdb}
	s.cluster, _ = rdb.(*redis.ClusterClient)
	s.batchers = newBatchers(s, batchBound(rdb))
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
// client. Where a command for several of them is refused as a whole, it goes on lock by lock, in one round trip. It
// remembers that a proxy refuses several slots in one command.
func (s *Scripts) Renew(ctx context.Context, holds []Renewal) {
	size := maxScript
	if s.single.Load() {
		size = 1
	}
	if len(holds) > size || len(holds) > 0 && s.confirm != nil {
		s.renewMany(ctx, slices.Collect(slices.Chunk(holds, size)))
		return
	}
	reply, err := s.send(ctx, &renew, renewArgs(holds))
	if len(holds) > 1 && s.refused(err) {
		s.renewMany(ctx, slices.Collect(slices.Chunk(holds, 1)))
		return
	}
	renewed(holds, reply, err, nil)
}

// maxScript bounds the renewals in one script: a hundred hold the server for about as long as five single commands of it.
const maxScript = 100

// renewMany renews the holds of each part by a script. The scripts travel together, and are confirmed together.
func (s *Scripts) renewMany(ctx context.Context, parts [][]Renewal) {
	to := route{on: s.rdb}
	if s.cluster != nil && s.confirm != nil {
		on, err := s.cluster.MasterForKey(ctx, parts[0][0].Keys.Lock)
		if err != nil {
			err = s.astray(err)
			for _, part := range parts {
				renewed(part, nil, err, nil)
			}
			return
		}
		to.on = on
	}
	s.renewBy(ctx, to, parts)
}

// renewBy is renewMany by this route. What is answered by a server that has not got the script, that refuses one for
// several holds, or that has not got the keys any more, is sent again.
func (s *Scripts) renewBy(ctx context.Context, to route, parts [][]Renewal) {
	pipe := to.on.Pipeline()
	cmds := make([]command, len(parts))
	for i, part := range parts {
		cmds[i] = command{redis.NewCmd(ctx, to.args(ctx, pipe, &renew, renewArgs(part))...)}
		_ = pipe.Process(ctx, cmds[i])
	}
	var doubt error
	if s.confirm != nil {
		_, doubt = s.exec(ctx, pipe)
	} else {
		_, _ = pipe.Exec(ctx) // each command has its own outcome
	}
	var again, split [][]Renewal
	moved := make(map[string][][]Renewal)
	for i, part := range parts {
		reply, err := cmds[i].Result()
		err = s.astray(err)
		addr, ask := s.asked(to, err)
		switch {
		case unknown(err) && !to.text:
			again = append(again, part)
		case len(part) > 1 && (s.refused(err) || ask): // Redis 6 says ASK where some keys are still here
			split = slices.AppendSeq(split, slices.Chunk(part, 1))
		case ask:
			moved[addr] = append(moved[addr], part)
		default:
			renewed(part, reply, err, doubt)
		}
	}
	if len(again) > 0 {
		s.renewBy(ctx, route{on: to.on, asking: to.asking, text: true}, again)
	}
	if len(split) > 0 {
		s.renewBy(ctx, route{on: to.on}, split)
	}
	for addr, parts := range moved {
		s.follow(to, addr, func(to route) { s.renewBy(ctx, to, parts) })
	}
}

// renewArgs is the command that renews the holds. It forgets their outcomes.
func renewArgs(holds []Renewal) []any {
	args := renew.args(len(holds), 2*len(holds))
	for i := range holds {
		holds[i].Err = nil
		args = append(args, holds[i].Keys.Lock)
	}
	var lease time.Duration
	var ms any // made once for leases that are equal: most are
	for i := range holds {
		if ms == nil || holds[i].Lease != lease {
			lease, ms = holds[i].Lease, holds[i].Lease.Milliseconds()
		}
		args = append(args, ms, holds[i].Field)
	}
	return args
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
