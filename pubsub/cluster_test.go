package pubsub_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/fencelock/fencelock/pubsub"
)

// cluster is real servers with all slots between them.
type cluster struct {
	*redistest.Cluster
	rdb *redis.ClusterClient
}

func newCluster(t *testing.T, nodes int, opts ...func(*redis.ClusterOptions)) *cluster {
	t.Helper()
	c := redistest.Clustered(t, nodes, 0, "--cluster-node-timeout", "2000")
	return &cluster{c, c.Client(opts...)}
}

// node is the one that has the channel's slot at first.
func (c *cluster) node(channel string) int { return c.SlotOf(channel) * len(c.Nodes) / redistest.Slots }

// sharded is the number of a node's subscribers of the sharded channel.
func (c *cluster) sharded(node int, channel string) int64 {
	return c.Nodes[node].Do("pubsub", "shardnumsub", channel).([]any)[1].(int64)
}

// hasSharded tells whether the server knows sharded channels.
func hasSharded(c *cluster) bool {
	return c.rdb.PubSubShardNumSub(context.Background(), "any").Err() == nil
}

// needSharded skips the test on a server that does not.
func needSharded(t *testing.T, c *cluster) *cluster {
	t.Helper()
	if !hasSharded(c) {
		redistest.Lacks(t, "this server has no sharded channels")
	}
	return c
}

func (c *cluster) spublish(channel string) func() error {
	return func() error { return c.rdb.SPublish(context.Background(), channel, "0").Err() }
}

func TestCluster_ShardedChannelsOnEveryNode(t *testing.T) {
	t.Parallel()
	c := needSharded(t, newCluster(t, 3))
	b, log := newBus(t, c.rdb, pubsub.Auto)
	const channels = 30 // in as many slots
	var all []*listener
	for i := range channels {
		all = append(all, listen(b, fmt.Sprint("channel-", i)))
	}
	on := map[int]int{}
	check := func() {
		t.Helper()
		for i, l := range all {
			l.eventually(t)
			l.hears(t, c.spublish(fmt.Sprint("channel-", i)))
		}
	}
	check()
	if !b.Sharded(t.Context()) {
		t.Error("messages are not to be sharded")
	}
	for i := range channels {
		channel := fmt.Sprint("channel-", i)
		on[c.node(channel)]++
		if n := c.sharded(c.node(channel), channel); n != 1 {
			t.Errorf("%d subscribers of %s", n, channel)
		}
	}
	if len(on) != 3 {
		t.Errorf("the channels are on %v", on)
	}
	for node := range c.Nodes {
		if list := pubsubClients(t, c.Nodes[node].Client()); len(list) != 1 {
			t.Errorf("node %d has %d connections", node, len(list))
		}
	}
	// P10: SSUBSCRIBE of two slots in one command is CROSSSLOT, and go-redis resubscribes to all in one.
	for node := range c.Nodes {
		c.Nodes[node].Do("client", "kill", "type", "pubsub")
	}
	for _, l := range all {
		redistest.Eventually(t, bound, func() bool { return l.woken.Load() >= 4 && l.Live() }, "the channels are rebuilt")
	}
	check()
	for _, said := range log.With("") {
		if strings.Contains(said, "CROSSSLOT") {
			t.Errorf("logged: %s", said)
		}
	}
	for _, l := range all {
		l.Close()
	}
	for node := range c.Nodes {
		redistest.Eventually(t, bound, func() bool { return len(pubsubClients(t, c.Nodes[node].Client())) == 0 }, "the connections are given up")
	}
}

func TestCluster_Unsharded(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 1)
	b, _ := newBus(t, c.rdb, pubsub.Off)
	l, other := listen(b, "a"), listen(b, "b")
	l.eventually(t)
	other.eventually(t)
	if b.Sharded(t.Context()) {
		t.Error("messages are to be sharded")
	}
	l.hears(t, publish(t, c.rdb, "a"))
	other.hears(t, publish(t, c.rdb, "b"))
	if !hasSharded(c) {
		return
	}
	if n := c.sharded(0, "a"); n != 0 {
		t.Errorf("%d sharded subscribers", n)
	}
}

func TestCluster_OneSlotAtATimeGivenUp(t *testing.T) {
	t.Parallel()
	c := needSharded(t, newCluster(t, 1))
	b, log := newBus(t, c.rdb, pubsub.On)
	a, z := listen(b, "a"), listen(b, "z")
	a.eventually(t)
	z.eventually(t)
	a.Close()
	redistest.Eventually(t, bound, func() bool { return c.sharded(0, "a") == 0 }, "the channel is given up")
	a = listen(b, "a")
	a.eventually(t)
	a.hears(t, c.spublish("a"))
	z.eventually(t)
	z.hears(t, c.spublish("z"))
	if len(log.With("")) != 0 {
		t.Errorf("logged: %q", log.With(""))
	}
}

// P10: an unrequested sunsubscribe is a reconnect: the slot has moved to another node.
func TestCluster_SlotMoves(t *testing.T) {
	t.Parallel()
	c := needSharded(t, newCluster(t, 3))
	b, _ := newBus(t, c.rdb, pubsub.Auto)
	moving, stays := listen(b, "moving"), listen(b, "stays")
	moving.eventually(t)
	stays.eventually(t)
	from := c.node("moving")
	to := (from + 1) % 3
	before := moving.woken.Load()
	c.Move(c.SlotOf("moving"), c.Nodes[from], c.Nodes[to])
	redistest.Eventually(t, bound, func() bool { return c.sharded(to, "moving") == 1 }, "the subscription has followed the slot")
	redistest.Eventually(t, bound, func() bool { return moving.Live() && moving.woken.Load() > before }, "and woken")
	moving.hears(t, c.spublish("moving"))
	stays.eventually(t)
	stays.hears(t, c.spublish("stays"))
}

func TestCluster_NodeComesBack(t *testing.T) {
	t.Parallel()
	c := needSharded(t, newCluster(t, 3))
	b, _ := newBus(t, c.rdb, pubsub.Auto)
	var all []*listener
	for i := range 12 {
		all = append(all, listen(b, fmt.Sprint("channel-", i)))
	}
	for _, l := range all {
		l.eventually(t)
	}
	killed := c.node("channel-0")
	c.Nodes[killed].Kill()
	redistest.Eventually(t, bound, func() bool { return !all[0].Live() && all[0].woken.Load() >= 2 }, "the loss is noticed, and wakes")
	for i, l := range all {
		if c.node(fmt.Sprint("channel-", i)) != killed {
			l.hears(t, c.spublish(fmt.Sprint("channel-", i)))
		}
	}
	c.Nodes[killed].Restart()
	c.Settle()
	for i, l := range all {
		l.eventually(t)
		l.hears(t, c.spublish(fmt.Sprint("channel-", i)))
	}
}

// Where a replica takes over, the subscription follows to it: the master before would deliver the messages, too, but the new one counts only
// those who listen to itself.
func TestCluster_AReplicaTakesOver(t *testing.T) {
	t.Parallel()
	started := redistest.Clustered(t, 3, 1)
	c := needSharded(t, &cluster{started, started.Client()})
	b, _ := newBus(t, c.rdb, pubsub.Auto)
	l := listen(b, "x")
	l.eventually(t)
	c.Failover(c.ReplicaOf(c.MasterOf("x")))
	master := c.MasterOf("x").Client()
	redistest.Eventually(t, bound, func() bool {
		return master.PubSubShardNumSub(t.Context(), "x").Val()["x"] == 1
	}, "the new master counts the subscription")
	l.hears(t, c.spublish("x"))
}
