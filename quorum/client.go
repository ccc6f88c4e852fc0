package quorum

import (
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"reflect"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/engine"
	"github.com/fencelock/fencelock/internal/quorums"
	"github.com/fencelock/fencelock/pubsub"
	"github.com/fencelock/fencelock/rlock"
	"github.com/fencelock/fencelock/scripts"
)

// New returns a client on these nodes: servers that know nothing of each other. Its locks are those of fenced.NewLock and rlock.NewLock, and what
// is made of these works on it: leaders, adapters. Read-write locks and semaphores do not: the first call says so. New sends nothing. All clients of a lock
// must have the same nodes: see the package doc on how they are changed. An odd number is best: of four nodes, three are a majority, so that four outlast no more than
// three. The nodes' clients stay the caller's: close them after this client.
//
// Nodes may be down, also when New is called: the lock works as long as a majority answers and counts, and the log says once which
// nodes do not (rlock.WithLogger). Where two nodes are the same server, the first call that gets answers of both returns
// ErrSameServer; so does New for the same client twice. A node is one server: Sentinel's failover clients and cluster clients are
// refused, because a replica that is promoted in a node's place has forgotten holds without having restarted.
//
// The options are those of this package, and rlock's WithLease, WithPollInterval, WithUnlockTimeout, WithPatience, WithLogger,
// WithTrace, WithLocalHandoffs, and WithPresence, which writes to each node. WithHandoffs and WithShardedPubSub have no effect here.
// WithReplicas and WithFsync are for one Redis: New refuses them. fenced.WithClockFloor has no effect on the locks: tokens are at least
// the nodes' time in microseconds in any case.
//
// Where a majority of the nodes does not answer, or does not count, calls that may wait try again for rlock.WithPatience, and return a
// *MajorityError. ErrSplitVote is rlock.ErrNotAcquired too, and ErrSameServer says that the nodes are wrong.
//
// The client's Close waits until what is under way has been answered and released, also on the slower nodes, for rlock.WithUnlockTimeout
// at most. For a node that has answered nothing for a second it does not wait while a majority answers, nor after the lease.
func New(nodes []redis.UniversalClient, opts ...rlock.Option) (*rlock.Client, error) {
	if len(nodes) == 0 {
		return nil, errors.New("quorum: New: no nodes: pass a client for each server, best an odd number of them")
	}
	names := make([]string, len(nodes))
	for i, rdb := range nodes {
		name, err := quorums.Name(rdb)
		if err != nil {
			return nil, fmt.Errorf("quorum: New: node %d: %w", i, err)
		}
		for j := range i {
			if reflect.TypeOf(rdb).Comparable() && nodes[j] == rdb {
				return nil, fmt.Errorf("quorum: New: nodes %d and %d: %w", j, i, ErrSameServer)
			}
		}
		names[i] = name
	}
	set, err := engine.MakeSettings(opts)
	if err != nil {
		return nil, err
	}
	if err := set.CheckSeveral(); err != nil {
		return nil, err
	}
	o, given := set.Quorum.(*options)
	if !given {
		o = defaults()
	}
	if err := o.check(set.Lease); err != nil {
		return nil, err
	}
	s, b := newStore(nodes, names, o, set.Log)
	client := engine.NewOn(s, b, engine.Limits{Servers: len(nodes), Longest: o.longest, Tries: o.tries, Owes: s.owes}, set)
	s.closed = client.Closed()
	for i, bus := range b.buses {
		bus.OnChange(func(_ string, up bool) { client.SubscriptionChanged(names[i], up) })
	}
	client.On(nodes...)
	return engine.Public(client).(*rlock.Client), nil
}

// newStore returns the nodes as a store, and their subscriptions as a bus.
func newStore(nodes []redis.UniversalClient, names []string, o *options, log *slog.Logger) (*store, *bus) {
	s := &store{
		nodes: make([]*node, len(nodes)),
		retry: o.retry,
		times: times{
			timeout: o.timeout,
			delay:   quorums.Delay(o.longest),
			longest: o.longest,
			born:    time.Now(),
		},
		asksAll: o.all,
		fields:  make(map[string]*fieldRecord),
		sweepAt: minSweep,
		known:   memory{locks: make(map[string]seen), sweepAt: minSweep},
	}
	s.members = &members{all: s.nodes, log: log, ended: s.isClosed}
	if first, err := quorums.NewMembers(names); err == nil {
		s.members.first = &record{first, first.String()}
	}
	b, hurries := &bus{store: s}, rand.N(16) == 0 // one of many, so that short programs too leave the marker
	for i, rdb := range nodes {
		s.nodes[i] = &node{index: i, name: names[i], rdb: rdb, scripts: scripts.NewNode(rdb), members: s.members, delay: s.delay, born: s.born, log: log, runs: runs{hurries: hurries}}
		b.buses = append(b.buses, pubsub.New(rdb, pubsub.Off, log))
	}
	s.sorted = byName(s.nodes)
	return s, b
}
