package pubsub_test

import (
	"net"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/fencelock/fencelock/pubsub"
)

// "Attempts to connect are spaced out up to a second" (doc): in a cluster too, where a node that is down is tried by a new
// link each time.
func TestCluster_AttemptsToConnectAreSpacedOut(t *testing.T) {
	t.Parallel()
	c := needSharded(t, newCluster(t, 1, func(o *redis.ClusterOptions) { o.DialerRetries = 1 })) // each attempt is one dial
	var dials atomic.Int64
	c.rdb.OnNewNode(func(node *redis.Client) { node.AddHook(locktest.DialHook(func() { dials.Add(1) })) })
	b, _ := newBus(t, c.rdb, pubsub.On)
	l := listen(b, "a")
	l.eventually(t)
	c.Nodes[0].Kill()
	redistest.Eventually(t, bound, func() bool { return !l.Live() }, "the loss is noticed")
	time.Sleep(3 * time.Second) // for the spacing to grow
	began, before := time.Now(), dials.Load()
	time.Sleep(3 * time.Second)
	if n, d := dials.Load()-before, time.Since(began); n > int64(4*d.Seconds()) { // of the link, and to ask where the slots are
		t.Errorf("%d dials in %v", n, d)
	}
}

// A server that cannot answer now has said nothing of what it knows: it is asked again.
func TestCluster_PassingErrorOfTheProbeDecidesNothing(t *testing.T) {
	t.Parallel()
	c := needSharded(t, newCluster(t, 1))
	proxy := redistest.NewProxy(t, c.Nodes[0].Addr())
	_, port, _ := net.SplitHostPort(proxy.Addr())
	if n, err := strconv.Atoi(port); err != nil || n == 0 {
		t.Fatal(port)
	}
	c.Nodes[0].Do("config", "set", "cluster-announce-port", port)
	rdb := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{proxy.Addr()}, MaxRedirects: -1})
	t.Cleanup(func() { _ = rdb.Close() })
	f := proxy.On("the probe", redistest.Command("pubsub"), redistest.Refuse("ERR max number of clients reached"))
	b, _ := newBus(t, rdb, pubsub.Auto)
	l := listen(b, "a")
	<-f.Fired()
	l.eventually(t)
	if !b.Sharded(t.Context()) {
		t.Error("sharded channels are off for ever: other clients, Redisson's too, publish to them")
	}
}
