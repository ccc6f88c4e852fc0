package interop

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/internal/redistest"
	"github.com/fencelock/fencelock/pubsub"
	"github.com/fencelock/fencelock/rlock"
)

// In a cluster both sides use the same kind of channel, by what they find out themselves: each wakes the other in every
// node's slots, and tokens grow over both.
func TestCluster(t *testing.T) {
	t.Parallel()
	cluster := redistest.Clustered(t, 3, 0, "--cluster-node-timeout", "15000")
	nodes, addrs := cluster.Nodes, cluster.Addrs()
	client := newJava(t, addrs[0], "cluster", "yes")
	mode, numSub := pubsub.Auto, (*redis.Client).PubSubShardNumSub
	if strings.HasPrefix(client.version(), "3.27.") { // which takes sharded channels for refused
		mode, numSub = pubsub.Off, (*redis.Client).PubSubNumSub
	}
	c := newClient(t, cluster.Client(), rlock.WithShardedPubSub(mode))
	listened := func(channel string, want int64) {
		t.Helper()
		redistest.Eventually(t, patience, func() bool {
			n := int64(0)
			for _, node := range nodes {
				rdb := node.Client()
				n += numSub(rdb, context.Background(), channel).Val()[channel]
				_ = rdb.Close()
			}
			return enough(n, want)
		}, "%d connections listen to %s", want, channel)
	}
	heardEverywhere(t, nodes)
	for i := range 12 {
		name := fmt.Sprint("lock:", i)
		if i%3 == 0 {
			name = fmt.Sprintf("order:{%d}:lock", i)
		}
		channel := "redisson_lock__channel:{" + name + "}"
		if strings.Contains(name, "{") {
			channel = "redisson_lock__channel:" + name
		}
		ours, java := fenced.NewLock(c, name), client.lock("a", fencedKind, name)
		held, _ := take(t, ours, t.Context())
		inner, token := take(t, ours, held)
		java.is("tryLock", false, "wait", "0")
		waits := java.start("lockAndGetToken")
		listened(channel, 1)
		noError(t, ours.Unlock(inner))
		noError(t, ours.Unlock(held))
		equal(t, name+": Redisson's token", client.must(waits).number(), token+1)
		busy(t, ours)
		listened(channel, 0)
		call := begin(func() (context.Context, error) { return ours.Lock(t.Context()) })
		listened(channel, 1)
		java.unlock()
		got := await(t, call, soon, name+": our waiter")
		noError(t, got.err)
		token, err := ours.Token(got.ctx)
		noError(t, err)
		equal(t, name+": getToken", java.number("getToken"), token)
		java.is("forceUnlock", true)
		await(t, got.ctx.Done(), soon, name+": the forced hold's context ends")
	}
}

// heardEverywhere waits until what is published at each node is heard at each other one. The nodes of a cluster that takes commands may
// still be connecting to each other, and nobody repeats a message.
func heardEverywhere(t *testing.T, nodes []*redistest.Server) {
	t.Helper()
	for i, at := range nodes {
		rdb := at.Client()
		sub := rdb.Subscribe(t.Context(), "heard everywhere?")
		_, err := sub.Receive(t.Context())
		noError(t, err)
		messages := sub.Channel()
		for j, from := range nodes {
			said, other := fmt.Sprint(j), from.Client()
			redistest.Eventually(t, patience, func() bool {
				noError(t, other.Publish(t.Context(), "heard everywhere?", said).Err())
				select {
				case m := <-messages:
					return m.Payload == said
				case <-time.After(10 * time.Millisecond):
					return false
				}
			}, "node %d hears node %d", i, j)
			_ = other.Close()
		}
		_ = sub.Close()
		_ = rdb.Close()
	}
}
