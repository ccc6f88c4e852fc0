package pubsub_test

import (
	"context"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/fencelock/fencelock/pubsub"
)

// allSlots is a cluster client for which somebody else says that a server has all slots, as Sentinel does.
func allSlots(t *testing.T, addr string, opts ...func(*redis.ClusterOptions)) *redis.ClusterClient {
	t.Helper()
	o := &redis.ClusterOptions{ClusterSlots: func(context.Context) ([]redis.ClusterSlot, error) {
		return []redis.ClusterSlot{{Start: 0, End: redistest.Slots - 1, Nodes: []redis.ClusterNode{{Addr: addr}}}}, nil
	}}
	for _, opt := range opts {
		opt(o)
	}
	rdb := redis.NewClusterClient(o)
	t.Cleanup(func() { _ = rdb.Close() })
	return rdb
}

// A cluster client does not make its servers a cluster: they are asked.
func TestServer_AClusterClientIsNotACluster(t *testing.T) {
	for what, mode := range map[string]pubsub.Sharding{"auto": pubsub.Auto, "on": pubsub.On, "off": pubsub.Off} {
		for rights, taken := range map[string][]any{"all": nil, "no INFO": {"-info"}} {
			t.Run(what+", "+rights, func(t *testing.T) {
				t.Parallel()
				server := redistest.Real(t)
				user := []any{"acl", "setuser", "limited", "on", ">secret", "~*", "allchannels", "+@all"}
				server.Do(append(user, taken...)...)
				b, log := newBus(t, allSlots(t, server.Addr(), func(o *redis.ClusterOptions) { o.Username, o.Password = "limited", "secret" }), mode)
				l := listen(b, "a")
				l.eventually(t)
				l.hears(t, publish(t, server.Client(), "a"))
				if b.Sharded(t.Context()) {
					t.Error("messages are to be sharded")
				}
				if sharded, known := b.Known(); sharded || !known {
					t.Errorf("sharded %v, known %v", sharded, known)
				}
				if said := log.With(""); len(said) > 0 {
					t.Errorf("logged: %q", said)
				}
			})
		}
	}
}

// A user who may not ask gets what WithShardedPubSub says, and otherwise unsharded channels and a line in the log.
func TestServer_NobodySaysWhetherItIsACluster(t *testing.T) {
	for what, mode := range map[string]pubsub.Sharding{"auto": pubsub.Auto, "on": pubsub.On, "off": pubsub.Off} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			server := redistest.Real(t)
			server.Do("acl", "setuser", "limited", "on", ">secret", "~*", "allchannels", "+@all", "-info", "-cluster")
			b, log := newBus(t, allSlots(t, server.Addr(), func(o *redis.ClusterOptions) { o.Username, o.Password = "limited", "secret" }), mode)
			if got := b.Sharded(t.Context()); got != (mode == pubsub.On) {
				t.Errorf("sharded: %v", got)
			}
			if said := log.With(""); len(said) > 1 || (mode == pubsub.Auto) != (len(said) == 1 && strings.Contains(said[0], "whether the servers are a cluster")) {
				t.Errorf("logged: %q", said)
			}
		})
	}
}

// A server that is not there yet has not said that it is none.
func TestServer_IsAskedAgainWhetherItIsACluster(t *testing.T) {
	t.Parallel()
	server := redistest.Real(t)
	server.Kill()
	b, _ := newBus(t, allSlots(t, server.Addr(), func(o *redis.ClusterOptions) { o.MaxRedirects, o.MaxRetries = -1, -1 }), pubsub.Auto)
	if b.Sharded(t.Context()) {
		t.Error("messages are to be sharded")
	}
	if _, known := b.Known(); known {
		t.Error("that is known")
	}
	server.Restart()
	l := listen(b, "a")
	l.eventually(t)
	l.hears(t, publish(t, server.Client(), "a"))
}

// A cluster is one, whoever says where its slots are.
func TestCluster_OfAClientThatIsToldTheSlots(t *testing.T) {
	t.Parallel()
	c := needSharded(t, newCluster(t, 1))
	for what, rights := range map[string][]any{"all": nil, "no INFO": {"-info"}} {
		c.Nodes[0].Do(append([]any{"acl", "setuser", "limited", "reset", "on", ">secret", "~*", "allchannels", "+@all"}, rights...)...)
		for name, mode := range map[string]pubsub.Sharding{"auto": pubsub.Auto, "on": pubsub.On, "off": pubsub.Off} {
			b, _ := newBus(t, allSlots(t, c.Nodes[0].Addr(), func(o *redis.ClusterOptions) { o.Username, o.Password = "limited", "secret" }), mode)
			if got := b.Sharded(t.Context()); got != (mode != pubsub.Off) {
				t.Errorf("%s, %s: sharded: %v", what, name, got)
			}
		}
	}
}
