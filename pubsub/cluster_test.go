package pubsub_test

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/redistest"
	"github.com/fencelock/fencelock/pubsub"
)

// cluster is real servers with all slots between them.
type cluster struct {
	t     *testing.T
	nodes []*redistest.Server
	rdb   *redis.ClusterClient
}

func newCluster(t *testing.T, nodes int, opts ...func(*redis.ClusterOptions)) *cluster {
	t.Helper()
	c := &cluster{t: t}
	var addrs []string
	for i := range nodes {
		server := redistest.Real(t, "--cluster-enabled", "yes", "--cluster-port", freePort(t), "--cluster-node-timeout", "2000",
			"--cluster-require-full-coverage", "no")
		c.nodes = append(c.nodes, server)
		addrs = append(addrs, server.Addr())
		first, last := 16384*i/nodes, 16384*(i+1)/nodes-1
		c.do(i, "cluster", "addslotsrange", first, last)
		c.do(i, "cluster", "set-config-epoch", i+1)
	}
	for i := range nodes {
		for j := range nodes {
			if i != j {
				_, port, _ := net.SplitHostPort(addrs[j])
				bus := c.do(j, "config", "get", "cluster-port").([]any)[1]
				c.do(i, "cluster", "meet", "127.0.0.1", port, bus)
			}
		}
	}
	c.settle()
	o := &redis.ClusterOptions{Addrs: addrs}
	for _, opt := range opts {
		opt(o)
	}
	c.rdb = redis.NewClusterClient(o)
	t.Cleanup(func() { _ = c.rdb.Close() })
	return c
}

// settle waits until every node knows of every slot.
func (c *cluster) settle() {
	c.t.Helper()
	for i := range c.nodes {
		redistest.Eventually(c.t, bound, func() bool {
			info := fmt.Sprint(c.do(i, "cluster", "info"))
			return strings.Contains(info, "cluster_state:ok") && strings.Contains(info, "cluster_slots_ok:16384")
		}, "node %d knows of all slots", i)
	}
}

// do sends a command to a node.
func (c *cluster) do(node int, args ...any) any {
	c.t.Helper()
	rdb := c.nodes[node].Client(func(o *redis.Options) { o.Protocol = 2 })
	defer func() { _ = rdb.Close() }()
	got, err := rdb.Do(context.Background(), args...).Result()
	if err != nil {
		c.t.Fatalf("%v: %v", args, err)
	}
	return got
}

// node is the one that has the channel's slot.
func (c *cluster) node(channel string) int {
	c.t.Helper()
	slot := int(c.do(0, "cluster", "keyslot", channel).(int64))
	for i := range c.nodes {
		if slot < 16384*(i+1)/len(c.nodes) {
			return i
		}
	}
	panic("not reached")
}

// sharded is the number of a node's subscribers of the sharded channel.
func (c *cluster) sharded(node int, channel string) int64 {
	c.t.Helper()
	return c.do(node, "pubsub", "shardnumsub", channel).([]any)[1].(int64)
}

func (c *cluster) spublish(channel string) func() error {
	return func() error { return c.rdb.SPublish(context.Background(), channel, "0").Err() }
}

func freePort(t *testing.T) string {
	t.Helper()
	port, err := redistest.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	return strconv.Itoa(port)
}

func TestCluster_ShardedChannelsOnEveryNode(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3)
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
	for node := range c.nodes {
		if list := pubsubClients(t, c.nodes[node].Client()); len(list) != 1 {
			t.Errorf("node %d has %d connections", node, len(list))
		}
	}
	// P10 [run]: SSUBSCRIBE of two slots in one command is CROSSSLOT, and go-redis resubscribes to all in one.
	for node := range c.nodes {
		c.do(node, "client", "kill", "type", "pubsub")
	}
	for _, l := range all {
		redistest.Eventually(t, bound, func() bool { return l.woken.Load() >= 4 && l.Live() }, "the channels are rebuilt")
	}
	check()
	for _, said := range log.all() {
		if strings.Contains(said, "CROSSSLOT") {
			t.Errorf("logged: %s", said)
		}
	}
	for _, l := range all {
		l.Close()
	}
	for node := range c.nodes {
		redistest.Eventually(t, bound, func() bool { return len(pubsubClients(t, c.nodes[node].Client())) == 0 }, "the connections are given up")
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
	if n := c.sharded(0, "a"); n != 0 {
		t.Errorf("%d sharded subscribers", n)
	}
}

func TestCluster_OneSlotAtATimeGivenUp(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 1)
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
	if len(log.all()) != 0 {
		t.Errorf("logged: %q", log.all())
	}
}

// P10: an unrequested sunsubscribe is a reconnect: the slot has moved to another node.
func TestCluster_SlotMoves(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3)
	b, _ := newBus(t, c.rdb, pubsub.Auto)
	moving, stays := listen(b, "moving"), listen(b, "stays")
	moving.eventually(t)
	stays.eventually(t)
	slot, from := c.do(0, "cluster", "keyslot", "moving"), c.node("moving")
	to := (from + 1) % 3
	id := c.do(to, "cluster", "myid")
	c.do(to, "cluster", "setslot", slot, "importing", c.do(from, "cluster", "myid"))
	c.do(from, "cluster", "setslot", slot, "migrating", id)
	before := moving.woken.Load()
	c.do(to, "cluster", "setslot", slot, "node", id)
	c.do(from, "cluster", "setslot", slot, "node", id)
	redistest.Eventually(t, bound, func() bool { return c.sharded(to, "moving") == 1 }, "the subscription has followed the slot")
	redistest.Eventually(t, bound, func() bool { return moving.Live() && moving.woken.Load() > before }, "and woken")
	moving.hears(t, c.spublish("moving"))
	stays.eventually(t)
	stays.hears(t, c.spublish("stays"))
}

func TestCluster_NodeComesBack(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3)
	b, _ := newBus(t, c.rdb, pubsub.Auto)
	var all []*listener
	for i := range 12 {
		all = append(all, listen(b, fmt.Sprint("channel-", i)))
	}
	for _, l := range all {
		l.eventually(t)
	}
	killed := c.node("channel-0")
	c.nodes[killed].Kill()
	redistest.Eventually(t, bound, func() bool { return !all[0].Live() && all[0].woken.Load() >= 2 }, "the loss is noticed, and wakes")
	for i, l := range all {
		if c.node1(fmt.Sprint("channel-", i), killed) != killed {
			l.hears(t, c.spublish(fmt.Sprint("channel-", i)))
		}
	}
	c.nodes[killed].Restart()
	c.settle()
	for i, l := range all {
		l.eventually(t)
		l.hears(t, c.spublish(fmt.Sprint("channel-", i)))
	}
}

// node1 is node, asked of another one than that which is down.
func (c *cluster) node1(channel string, down int) int {
	slot := int(c.do((down+1)%len(c.nodes), "cluster", "keyslot", channel).(int64))
	for i := range c.nodes {
		if slot < 16384*(i+1)/len(c.nodes) {
			return i
		}
	}
	panic("not reached")
}
