package main

import (
	"context"
	"fmt"
	"hash/fnv"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/test/redisserver"
	"github.com/fencelock/fencelock/scripts"
)

// nodes are the servers of a quorum.
type nodes struct {
	servers []*redisserver.Server
	rdbs    []*redis.Client // the program's own, for INFO
	started time.Time
}

// A node does not count before it is older than the longest lease, and a second more: see package quorum. The lease is
// short here, so that a run does not wait for it.
const (
	quorumLease = 2 * time.Second
	nodesOld    = quorumLease + 2*time.Second
)

func startNodes(count int) (*nodes, error) {
	n := new(nodes)
	for range count {
		s, err := redisserver.StartApart()
		if err != nil {
			n.stop()
			return nil, err
		}
		n.servers, n.rdbs = append(n.servers, s), append(n.rdbs, open(s.Addr()))
	}
	n.started = time.Now()
	return n, nil
}

func (n *nodes) stop() {
	for i, s := range n.servers {
		_ = n.rdbs[i].Close()
		s.Close()
	}
}

func (n *nodes) addrs() []string {
	var addrs []string
	for _, s := range n.servers {
		addrs = append(addrs, s.Addr())
	}
	return addrs
}

// awaitOld waits until all count.
func (n *nodes) awaitOld(ctx context.Context) { sleep(ctx, time.Until(n.started.Add(nodesOld))) }

// homeOf returns which of the servers is the home of the lock of this key, which fencelock's clients ask first. It goes by the
// rule of package quorum, which that does not promise.
func homeOf(key string, addrs []string) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(scripts.KeysOf(key).Channel()))
	return slices.Sorted(slices.Values(addrs))[int(h.Sum32()%uint32(len(addrs)))]
}

// closedAddr returns an address at which nothing listens.
func closedAddr() (string, error) {
	port, err := redisserver.FreePort()
	return fmt.Sprintf("127.0.0.1:%d", port), err
}
