package main

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/test/redisserver"
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
