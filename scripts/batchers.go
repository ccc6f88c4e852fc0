package scripts

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// abandonAfter is when a batch is given up, beyond the client's ReadTimeout, which ends it first where there is one.
	abandonAfter = 5 * time.Second
	// maxBatchers is the number of batchers from which on the idle ones are forgotten: nodes come and go.
	maxBatchers = 1024
)

// batchers are where ops wait to be sent: one batcher, or one for each node of a cluster, so that a node that hangs keeps
// nobody else's ops.
type batchers struct {
	scripts *Scripts
	bound   time.Duration // of a batch
	first   *batcher      // of the server; in a cluster, of the ops whose node is not known yet

	mu    sync.Mutex
	nodes map[string]*batcher // of a cluster, by the address of the master
}

func newBatchers(s *Scripts, bound time.Duration) *batchers {
	bs := &batchers{scripts: s, bound: bound, nodes: make(map[string]*batcher)}
	bs.first = &batcher{batchers: bs, most: maxInFlight, mixed: s.cluster != nil}
	return bs
}

// batchBound is how long a batch may take.
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

// batcherOf is the batcher that is to send the op. What is to be confirmed has batchers of its own, so that nothing else
// waits for replicas. It does not block: where the cluster client knows the nodes it has them in memory, and sees to it
// that they are up to date.
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

// of is the batcher of a node.
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

// learn makes the cluster client know its nodes, before any ops are in the batch: a node that hangs may be asked for them.
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
