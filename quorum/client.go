package quorum

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"reflect"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/internal/engine"
	"github.com/fencelock/fencelock/internal/quorums"
	"github.com/fencelock/fencelock/pubsub"
	"github.com/fencelock/fencelock/rlock"
	"github.com/fencelock/fencelock/scripts"
)

// Client is what the locks of one process share: the nodes, the watchdog, the subscriptions, the holds and the waiters. Create one
// per process with New. It is safe for concurrent use.
type Client struct {
	client *rlock.Client
	store  *store
}

// New returns a client on these nodes: servers that know nothing of each other. New sends nothing. All clients of a lock
// must have the same nodes. An odd number is best: of four nodes, three are a majority, so that four outlast no more than
// three. The nodes' clients stay the caller's: close them after this client.
//
// Nodes may be down, also when New is called: the lock works as long as a majority answers and counts, and the log says once which
// nodes do not (rlock.WithLogger). Where two nodes are the same server, the first call that gets answers of both returns
// ErrSameServer; so does New for the same client twice. A node is one server: Sentinel's failover clients and cluster clients are
// refused, because a replica that is promoted in a node's place has forgotten holds without having restarted.
func New(nodes []redis.UniversalClient, opts ...Option) (*Client, error) {
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
	o := options{timeout: nodeTimeout, retry: [2]time.Duration{5 * time.Millisecond, 50 * time.Millisecond}}
	for _, opt := range opts {
		if opt == nil {
			return nil, errors.New("quorum: New: an option is nil: leave it out")
		}
		opt(&o)
	}
	set, err := engine.MakeSettings(o.lock)
	if err != nil {
		return nil, err
	}
	if err := set.CheckSeveral(); err != nil {
		return nil, err
	}
	if err := o.check(set.Lease); err != nil {
		return nil, err
	}
	s, b := newStore(nodes, names, &o, set.Log)
	client := engine.NewOn(s, b, engine.Limits{Servers: len(nodes), Longest: o.longest, Tries: o.tries, Owes: s.owes}, set)
	s.closed = client.Closed()
	for i, bus := range b.buses {
		bus.OnChange(func(_ string, up bool) { client.SubscriptionChanged(names[i], up) })
	}
	client.PresentOn(nodes...)
	return &Client{client: (*rlock.Client)(client), store: s}, nil
}

// newStore returns the nodes as a store, and their subscriptions as a bus.
func newStore(nodes []redis.UniversalClient, names []string, o *options, log *slog.Logger) (*store, *bus) {
	majority := len(nodes)/2 + 1
	s := &store{
		nodes:    make([]*node, len(nodes)),
		majority: majority,
		retry:    o.retry,
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
	b, hurries := &bus{store: s}, rand.N(16) == 0 // one of many, so that short programs too leave the marker
	for i, rdb := range nodes {
		s.nodes[i] = &node{index: i, name: names[i], rdb: rdb, scripts: scripts.NewNode(rdb), delay: s.delay, born: s.born, log: log, runs: runs{hurries: hurries}}
		b.buses = append(b.buses, pubsub.New(rdb, pubsub.Off, log))
	}
	s.sorted = byName(s.nodes)
	return s, b
}

// ID returns the client's id, a UUID: the fields of its holds on the nodes begin with it, and so do the events of a trace. It asks no node.
func (c *Client) ID() string { return c.client.ID() }

// Close ends the client's work: calls that wait return rlock.ErrClosed, as new ones do; the contexts of held locks end with rlock.ErrClosed,
// and their leases are not renewed any more. Unlock still releases, also after Close.
//
// Close waits until what is under way has been answered and released, also on the slower nodes, but no longer than rlock.WithUnlockTimeout, 5 s by
// default; what is not released by then is free at the end of its lease. For a node that has answered nothing for a second Close does not
// wait while a majority answers, nor after the lease. The nodes' clients stay open: close them after this
// one. Close returns nil, and may be called more than once.
func (c *Client) Close() error {
	return c.client.Close()
}

// Shutdown stops taking locks for contexts that hold none, which get rlock.ErrClosed, waits until the held ones are unlocked, and closes the
// client, as Close does. Meanwhile holders may re-enter and take further locks, and leases are renewed. When ctx ends first, or Close is called
// meanwhile, the client is closed all the same, and the error says how many holds were open; it is the context's error or
// rlock.ErrClosed too. Shutdown then takes up to rlock.WithUnlockTimeout longer than ctx.
func (c *Client) Shutdown(ctx context.Context) error {
	return c.client.Shutdown(ctx)
}

// NewLock returns the lock of this name on the client's nodes. It is a fenced.Lock, with the methods and the tokens of
// one on a single Redis, as the package doc says. fenced.WithClockFloor has no effect: tokens are at least the nodes' time in microseconds
// in any case. NewLock sends nothing, and returns no error: what is wrong with the name, the options or a nil client the first call says.
//
// Where a majority of the nodes does not answer, or does not count, calls that may wait try again for rlock.WithPatience, and return a
// *MajorityError. ErrSplitVote is rlock.ErrNotAcquired too, and ErrSameServer says that the nodes are wrong.
func NewLock(client *Client, name string, opts ...fenced.Option) *fenced.Lock {
	if client == nil {
		return fenced.NewLock(nil, name, opts...)
	}
	return fenced.NewLock(client.client, name, opts...)
}
