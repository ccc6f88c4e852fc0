package scripts

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// abandonAfter is how long a batch may take beyond the ReadTimeout of the Redis client. A ReadTimeout, where there is
	// one, ends the batch first.
	abandonAfter = 5 * time.Second
	// maxBatchers is how many batchers there may be before the idle ones are removed: nodes of a cluster come and go.
	maxBatchers = 1024
)

// batchers has the batchers of one Redis client: one for a server, or one for each node of a cluster, so that a node that
// hangs keeps no other node's ops waiting.
type batchers struct {
	scripts *Scripts
	bound   time.Duration // how long a batch may take
	slow    time.Duration // how long a server that answers may take, beside the command itself
	first   *batcher      // for the server; in a cluster, for the ops whose node is not known yet

	mu    sync.Mutex
	nodes map[string]*batcher // for the nodes of a cluster, by the address of the master
}

func newBatchers(s *Scripts, bound, slow time.Duration) *batchers {
	bs := &batchers{scripts: s, bound: bound, slow: slow, nodes: make(map[string]*batcher)}
	bs.first = &batcher{batchers: bs, most: maxInFlight, mixed: s.cluster != nil}
	return bs
}

// batchBound is how long a batch of this Redis client may take: its ReadTimeout, if it has one, and abandonAfter.
func batchBound(rdb redis.UniversalClient) time.Duration {
	var reads time.Duration
	switch r := rdb.(type) {
	case *redis.Client:
		reads = r.Options().ReadTimeout
	case *redis.ClusterClient:
		reads = r.Options().ReadTimeout
	}
	return abandonAfter + max(reads, 0)
}

// batcherOf returns the batcher that is to send the op. Ops that need a confirmation have batchers of their own, so that no
// other op waits for replicas. batcherOf does not block: a cluster client that knows the nodes has them in memory, and keeps
// them up to date by itself.
func (s *Scripts) batcherOf(op *Op) *batcher {
	bs := s.batchers
	if s.confirm != nil && op.promises() {
		bs = s.confirmed
	}
	if s.known.Load() {
		if on, err := s.cluster.MasterForKey(context.Background(), op.keys.Lock); err == nil {
			return bs.of(on.Options().Addr)
		}
	}
	return bs.first
}

// of returns the batcher for the node at this address, and makes it if there is none.
func (bs *batchers) of(node string) *batcher {
	bs.mu.Lock()
	defer bs.mu.Unlock()
	b := bs.nodes[node]
	if b == nil {
		if len(bs.nodes) >= maxBatchers {
			maps.DeleteFunc(bs.nodes, func(_ string, b *batcher) bool { return b.idle() })
		}
		b = &batcher{batchers: bs, most: maxInFlight}
		bs.nodes[node] = b
	}
	return b
}

// learn makes a cluster client load the nodes of the cluster, and returns why it could not. It runs before any ops are in
// the batch, as the client may ask a node that hangs.
func (s *Scripts) learn(f *batch) error {
	if s.cluster == nil || s.known.Load() {
		return nil
	}
	f.began = time.Now()
	f.left.Store(true)
	if _, err := s.cluster.MasterForKey(f, ""); err != nil {
		s.astray(err)
		return err
	}
	s.known.Store(true)
	return nil
}
