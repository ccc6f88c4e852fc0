package interop

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/internal/redistest"
)

// In a cluster both sides use the same kind of channel, by what they find out themselves: each wakes the other in every
// node's slots, and tokens grow over both.
func TestCluster(t *testing.T) {
	t.Parallel()
	cluster := redistest.Clustered(t, 3, 0, "--cluster-node-timeout", "15000")
	nodes, addrs := cluster.Nodes, cluster.Addrs()
	c := newClient(t, cluster.Client())
	client := newJava(t, addrs[0], "cluster", "yes")
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
		listenedSharded(t, nodes, channel, 1)
		noError(t, ours.Unlock(inner))
		noError(t, ours.Unlock(held))
		equal(t, name+": Redisson's token", client.must(waits).number(), token+1)
		busy(t, ours)
		listenedSharded(t, nodes, channel, 0)
		call := begin(func() (context.Context, error) { return ours.Lock(t.Context()) })
		listenedSharded(t, nodes, channel, 1)
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

// listenedSharded waits until so many connections listen to the sharded channel.
func listenedSharded(t *testing.T, nodes []*redistest.Server, channel string, want int64) {
	t.Helper()
	redistest.Eventually(t, patience, func() bool {
		n := int64(0)
		for _, node := range nodes {
			rdb := node.Client()
			n += rdb.PubSubShardNumSub(context.Background(), channel).Val()[channel]
			_ = rdb.Close()
		}
		return enough(n, want)
	}, "%d connections listen to %s", want, channel)
}
