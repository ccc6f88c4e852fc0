package interop

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/fencelock/fencelock/rlock"
)

// In a cluster both sides use the same kind of channel, by what they find out themselves but for Redisson 3.27.2: each wakes the other
// in every node's slots, and tokens grow over both.
func TestCluster(t *testing.T) {
	t.Parallel()
	client, c, listened := inCluster(t)
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
		held, _ := take(t, withoutToken{ours}, t.Context())
		inner, token := take(t, withoutToken{ours}, held)
		java.is("tryLock", false, "wait", "0")
		waits := java.start("lockAndGetToken")
		listened(channel, 1)
		noError(t, ours.Unlock(inner))
		noError(t, ours.Unlock(held))
		equal(t, name+": Redisson's token", client.must(waits).number(), token+1)
		busy(t, withoutToken{ours})
		listened(channel, 0)
		call := begin(func() (context.Context, error) { return locktest.NoToken(ours.LockAndGetToken(t.Context())) })
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

// inCluster returns clients of either side for a cluster of three masters, which use channels of the same kind. listened waits until so many
// connections listen to a channel.
func inCluster(t *testing.T) (client *javaClient, c *rlock.Client, listened func(channel string, want int64)) {
	t.Helper()
	cluster := redistest.Clustered(t, 3, 0, "--cluster-node-timeout", "15000")
	nodes, addrs := cluster.Nodes, cluster.Addrs()
	client = newJava(t, addrs[0], "cluster", "yes")
	sharded, old := listensSharded(t, client, nodes), strings.HasPrefix(client.version(), "3.27.")
	for tries := 1; sharded && old && tries < 40; tries++ { // the same kind in each run of the test: most clients of 3.27.2 have this one
		client.close()
		client = newJava(t, addrs[0], "cluster", "yes")
		sharded = listensSharded(t, client, nodes)
	}
	equal(t, "Redisson uses sharded channels", sharded, !old)
	var opts []rlock.Option
	count := (*redis.Client).PubSubShardNumSub
	if old {
		opts, count = append(opts, rlock.WithShardedPubSub(false)), (*redis.Client).PubSubNumSub
	}
	c = newClient(t, cluster.Client(), opts...)
	return client, c, func(channel string, want int64) {
		t.Helper()
		redistest.Eventually(t, patience, func() bool {
			return enough(listeners(nodes, count, channel), want)
		}, "%d connections listen to %s", want, channel)
	}
}

// listensSharded lets a thread of Redisson's wait for another's lock, and looks which kind of channel the client listens to. Redisson
// 3.27.2 finds that out by a message to the slot 0, which it gives to one of the nodes, any of them: where another one has the slot, that
// node's MOVED is a refusal to it. So of its clients some use sharded channels and some do not. Later versions ask in a way that each node
// answers.
func listensSharded(t *testing.T, client *javaClient, nodes []*redistest.Server) bool {
	t.Helper()
	const name = "which channels?"
	holder, waiter := client.lock("holder", plainKind, name), client.lock("waiter", plainKind, name)
	holder.lock()
	waits := waiter.start("lock")
	sharded, channel := false, "redisson_lock__channel:{"+name+"}"
	redistest.Eventually(t, patience, func() bool {
		sharded = listeners(nodes, (*redis.Client).PubSubShardNumSub, channel) > 0
		return sharded || listeners(nodes, (*redis.Client).PubSubNumSub, channel) > 0
	}, "Redisson listens to %s", channel)
	holder.unlock()
	client.must(waits)
	waiter.unlock()
	return sharded
}

type numSub func(*redis.Client, context.Context, ...string) *redis.MapStringIntCmd

// listeners is how many connections to the nodes listen to the channel.
func listeners(nodes []*redistest.Server, count numSub, channel string) (n int64) {
	for _, node := range nodes {
		rdb := node.Client()
		n += count(rdb, context.Background(), channel).Val()[channel]
		_ = rdb.Close()
	}
	return n
}

// The sides of a read-write lock wake each other in every node's slots.
func TestReadWriteCluster(t *testing.T) {
	t.Parallel()
	client, c, listened := inCluster(t)
	for i := range 6 {
		name := fmt.Sprint("lock:", i)
		if i%3 == 0 {
			name = fmt.Sprintf("order:{%d}:lock", i)
		}
		l := fenced.NewRWLock(c, name)
		reads, writes := client.lock("a", readKind, name), client.lock("a", writeKind, name)
		held, _ := take(t, withoutToken{l.Read()}, t.Context())
		reads.lock()
		reads.unlock()
		waits := writes.startLock()
		listened(rwChannel(name), 1)
		noError(t, l.Read().Unlock(held))
		client.must(waits)
		refused(t, l.Read())
		listened(rwChannel(name), 0)
		call := begin(func() (context.Context, error) { return locktest.NoToken(l.Read().LockAndGetToken(t.Context())) })
		listened(rwChannel(name), 1)
		writes.unlock()
		got := await(t, call, soon, name+": our reader")
		noError(t, got.err)
		writes.is("isLocked", false)
		if i > 0 {
			noError(t, l.Read().Unlock(got.ctx))
			continue
		}
		reads.is("forceUnlock", true)
		await(t, got.ctx.Done(), soon, name+": the forced hold's context ends")
	}
}
