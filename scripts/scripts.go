package scripts

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// NoExpiry is the TTL of a key that never expires.
const NoExpiry = time.Duration(-1)

// NoKey is the TTL of a key that is not there.
const NoKey = time.Duration(-2)

// Scripts runs the scripts over one Redis client. go-redis repeats none of the commands (P13). The methods that ask Redis,
// but Send and Renew, are one command each, of which copies are sent where it has no answer (P8). All but Send block until there is an
// answer or an error. The end of a context stops neither a read nor a command that was sent. Errors are go-redis's own, some with a
// sentence added that says what to do.
type Scripts struct {
	rdb      redis.UniversalClient
	cluster  *redis.ClusterClient // rdb, if it is one
	known    atomic.Bool          // the cluster client knows its nodes
	single   atomic.Bool          // each command is for one lock: something on the way to Redis refuses several slots in one command
	batchers *batchers
	spare    sync.Pool     // of *batch that are over
	pace     pace          // of the answers
	probers  sync.Map      // of *prober: for the server, or by the address of a node of the cluster
	copies   chan struct{} // has an element for each copy of a command that is under way

	reports   bool          // the server is one of a quorum: a renewal has a Report
	confirm   *Confirmation // nil: no confirmation is asked for
	confirmed *batchers     // for the ops that need a confirmation
}

// New returns the Scripts that run over rdb. It sends nothing.
func New(rdb redis.UniversalClient) *Scripts {
	s := &Scripts{rdb: rdb, copies: make(chan struct{}, maxCopies)}
	s.cluster, _ = rdb.(*redis.ClusterClient)
	s.batchers = newBatchers(s, batchBound(rdb), 0)
	return s
}

// NewNode is New for one server of a quorum. Its Renewed sets the Report of each renewal.
func NewNode(rdb redis.UniversalClient) *Scripts {
	s := New(rdb)
	s.reports = true
	return s
}

// A State is what Inspect has found.
type State struct {
	Locked bool          // some hold has the lock
	Count  int           // the asked hold's count, 0 where it has not got the lock
	TTL    time.Duration // when the lock's key expires, or NoExpiry, NoKey
	Field  string        // of the hold that has the lock, "" for none
}

// Inspect asks which hold has the lock, and for the count of the hold of this field. It changes nothing. The error is
// go-redis's own, maybe with a sentence added.
func (s *Scripts) Inspect(ctx context.Context, keys *Keys, field string) (State, error) {
	type outcome struct {
		state State
		err   error
	}
	o, _ := hedged(ctx, s, keys.Lock, 0, func(ctx context.Context) (o outcome) {
		var reply any
		if reply, o.err = s.run(ctx, &inspect, []string{keys.Lock}, field); o.err != nil {
			o.err = explain(keys, o.err)
		} else {
			o.state, o.err = parseState(reply)
		}
		return o
	}, func(o outcome) bool { return final(o.err) })
	return o.state, o.err
}

// A Renewal is one hold whose lease is to be extended.
type Renewal struct {
	Keys  *Keys
	Field string
	Lease time.Duration
	Err   error // set by Renew: nil, ErrGone, ErrUnconfirmed, or why nobody knows whether the lease was extended

	Report *Report // set by Renewed of a server of a quorum that has answered: without Holder, TTL and Counter
}

// renewOnce is Renew by one attempt.
func (s *Scripts) renewOnce(ctx context.Context, holds []Renewal) {
	size := maxScript
	if s.single.Load() {
		size = 1
	}
	if slices.ContainsFunc(holds, func(r Renewal) bool { return r.reads() != holds[0].reads() }) {
		s.renewBoth(ctx, holds, size)
		return
	}
	if len(holds) > size || len(holds) > 0 && s.confirm != nil {
		s.renewMany(ctx, slices.Collect(slices.Chunk(holds, size)))
		return
	}
	reply, err := s.send(ctx, s.renewOf(holds), func() []any { return s.renewArgs(holds) })
	if len(holds) > 1 && s.refused(err) {
		s.renewMany(ctx, slices.Collect(slices.Chunk(holds, 1)))
		return
	}
	s.renewed(holds, reply, err)
}

// renewBoth is renewOnce of holds of which some read, and others do not: a script renews holds of one sort.
func (s *Scripts) renewBoth(ctx context.Context, holds []Renewal, size int) {
	sorted := slices.Clone(holds)
	order := make([]int, len(holds))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		if holds[a].reads() == holds[b].reads() {
			return 0
		} else if holds[a].reads() {
			return 1
		}
		return -1
	})
	others := 0
	for i, at := range order {
		if sorted[i] = holds[at]; !sorted[i].reads() {
			others++
		}
	}
	s.renewMany(ctx, append(slices.Collect(slices.Chunk(sorted[:others], size)), slices.Collect(slices.Chunk(sorted[others:], size))...))
	for i, at := range order {
		holds[at].Err = sorted[i].Err
	}
}

// reads tells whether the hold is one that reads, of a read-write lock.
func (r Renewal) reads() bool { return r.Keys.side == Reads }

// renewOf returns the script that renews these holds.
func (s *Scripts) renewOf(holds []Renewal) *script {
	switch {
	case s.reports:
		return &renewNode
	case len(holds) > 0 && holds[0].reads():
		return &readRenew
	}
	return &renew
}

// maxScript bounds the renewals in one script: a hundred keep the server busy for about as long as five scripts of one
// renewal.
const maxScript = 100

// renewMany renews the holds of each part by one run of the script. The runs share a round trip and a confirmation.
func (s *Scripts) renewMany(ctx context.Context, parts [][]Renewal) {
	to := route{on: s.rdb}
	if s.cluster != nil && s.confirm != nil {
		on, err := s.cluster.MasterForKey(ctx, parts[0][0].Keys.Lock)
		if err != nil {
			err = s.astray(err)
			for _, part := range parts {
				s.renewed(part, nil, err)
			}
			return
		}
		to.on = on
	}
	parcels := make([]parcel, len(parts))
	for i, part := range parts {
		parcels[i] = &renewals{s, part}
	}
	s.exchange(ctx, to, parcels, s.confirm != nil)
}

// renewArgs returns the command that renews the holds, and clears the Err of each.
func (s *Scripts) renewArgs(holds []Renewal) []any {
	keys := len(holds)
	if keys > 0 && holds[0].reads() {
		keys *= 2
	}
	args := s.renewOf(holds).args(keys, 2*len(holds))
	for i := range holds {
		holds[i].Err = nil
		args = append(args, holds[i].Keys.Lock)
	}
	for i := len(holds); i < keys; i++ {
		hold := &holds[i-len(holds)]
		args = append(args, hold.Keys.LeaseOf(hold.Field, 1)) // a node refuses to renew a hold of which only one key is there (P54)
	}
	var lease time.Duration
	var ms any // made once for a row of equal leases: most are equal
	for i := range holds {
		if ms == nil || holds[i].Lease != lease {
			lease, ms = holds[i].Lease, holds[i].Lease.Milliseconds()
		}
		args = append(args, ms, holds[i].Field)
	}
	return args
}

// renewed notes what has become of the holds: the reply, or an error in place of it.
func (s *Scripts) renewed(holds []Renewal, reply any, err error) {
	if err == nil {
		err = parseRenewed(reply, holds, s.reports)
	}
	for i := range holds {
		if err != nil {
			holds[i].Err = explain(holds[i].Keys, err)
		}
	}
}

// renewals are the holds that one script renews.
type renewals struct {
	of    *Scripts
	holds []Renewal
}

func (r *renewals) script() *script      { return r.of.renewOf(r.holds) }
func (r *renewals) args() []any          { return r.of.renewArgs(r.holds) }
func (r *renewals) several() bool        { return len(r.holds) > 1 }
func (r *renewals) unlined(error) parcel { return nil }
func (r *renewals) early() bool          { return false }
func (r *renewals) read(reply any)       { r.of.renewed(r.holds, reply, nil) }
func (r *renewals) failed(err error)     { r.of.renewed(r.holds, nil, err) }

func (r *renewals) apart() []parcel {
	all := make([]parcel, len(r.holds))
	for i := range all {
		all[i] = &renewals{r.of, r.holds[i : i+1]}
	}
	return all
}

func (r *renewals) confirmed(unconfirmed error) {
	for i := range r.holds {
		if hold := &r.holds[i]; hold.Err == nil && hold.Lease > 0 {
			hold.Err = unconfirmed
		}
	}
}
