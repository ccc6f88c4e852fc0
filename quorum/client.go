package quorum

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/internal/seam"
	"github.com/fencelock/fencelock/pubsub"
	"github.com/fencelock/fencelock/rlock"
	"github.com/fencelock/fencelock/scripts"
)

// Client is what the locks of one process share: the nodes, the watchdog, the subscriptions, and who holds or waits for
// what. Create one per process with New. It is safe for concurrent use.
type Client struct {
	client *rlock.Client
	store  *store
}

// New returns a client on these nodes: servers that know nothing of each other. It sends nothing. All clients of a lock
// must have the same nodes. An odd number is best: of four nodes, three are a majority, so that four outlast no more than
// three. The nodes' clients stay the caller's: close them after this client.
//
// Nodes may be down, also when New is called: the lock works as long as a majority answers and counts, and the log says
// once which ones do not (rlock.WithLogger). Two nodes that are the same server are ErrSameServer, from the first call that
// hears it from both. A node is one server: Sentinel's failover clients and cluster clients are refused, because a replica
// that is promoted in a node's place has forgotten holds without having restarted.
func New(nodes []redis.UniversalClient, opts ...Option) (*Client, error) {
	if len(nodes) == 0 {
		return nil, errors.New("quorum: New: no nodes: pass a client for each server, best an odd number of them")
	}
	names := make([]string, len(nodes))
	for i, rdb := range nodes {
		name, err := nodeName(rdb)
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
	c := new(Client)
	client, err := seam.NewClient(o.lock, func(set seam.Settings) (seam.Parts, error) {
		if err := o.check(set.Lease); err != nil {
			return seam.Parts{}, err
		}
		most := len(nodes)/2 + 1
		s := &store{
			nodes:   make([]*node, len(nodes)),
			most:    most,
			timeout: o.timeout,
			retry:   o.retry,
			delay:   (o.longest + time.Second - 1).Truncate(time.Second) + time.Second,
			ballots: make(map[string]*ballot),
			sweepAt: minSweep,
			rivals:  make(map[string]*rivals),

			sweepRivalsAt: minSweep,
		}
		b := &bus{store: s, group: rand.N(scripts.Groups), least: len(nodes) - most + 1, coil: o.retry[0]}
		for i, rdb := range nodes {
			s.nodes[i] = &node{index: i, name: names[i], rdb: rdb, scripts: scripts.New(rdb), delay: s.delay, log: set.Log}
			b.buses = append(b.buses, pubsub.New(rdb, pubsub.Off, set.Log))
		}
		s.sorted = byName(s.nodes)
		c.store = s
		return seam.Parts{Store: s, Bus: b, Longest: o.longest, Tries: o.tries, Owes: s.owes}, nil
	})
	if err != nil {
		return nil, err
	}
	c.client = client.(*rlock.Client)
	return c, nil
}

// nodeName is what errors call the node.
func nodeName(rdb redis.UniversalClient) (string, error) {
	errNil := errors.New("the client is nil: pass a *redis.Client for each server")
	switch r := rdb.(type) {
	case nil:
		return "", errNil
	case *redis.Client:
		if r == nil {
			return "", errNil
		}
		if r.Options().Addr == "FailoverClient" {
			return "", errors.New("a Sentinel failover client is not one server: a replica that is promoted has forgotten holds, and nobody can see it; pass a client of the master alone")
		}
		return r.Options().Addr, nil
	case *redis.ClusterClient, *redis.Ring:
		return "", fmt.Errorf("a %T is not one server: pass a *redis.Client for each server", rdb)
	}
	return fmt.Sprintf("%T", rdb), nil
}

// Close is rlock.Client.Close.
func (c *Client) Close() error { return c.client.Close() }

// Shutdown is rlock.Client.Shutdown.
func (c *Client) Shutdown(ctx context.Context) error { return c.client.Shutdown(ctx) }

// NewLock returns the lock of this name on the client's nodes. It is a fenced.Lock, with the methods and the tokens of
// one on a single Redis, as the package doc says; fenced.WithTokenBlocks has no effect, and neither has fenced.WithClockFloor:
// tokens are at least the nodes' time in microseconds in any case. It asks no one.
func NewLock(client *Client, name string, opts ...fenced.Option) *fenced.Lock {
	if client == nil {
		return fenced.NewLock(nil, name, opts...)
	}
	return fenced.NewLock(client.client, name, opts...)
}
