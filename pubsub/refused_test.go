package pubsub_test

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2/server"
	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/pubsub"
)

// P10: the bus tries a refused subscription again after a second, and then ever more rarely, down to each half minute, which newer ones do not
// put off. It is live once the user has the right. A channel that is live is not subscribed to again, and one line is logged.
func TestP10_ARefusedChannelIsTriedAgain(t *testing.T) {
	virtual(t, func(t *testing.T, n *network) {
		var mu sync.Mutex
		tries, may := map[string]int{}, "good"
		tried := func(channel string) int {
			mu.Lock()
			defer mu.Unlock()
			return tries[channel]
		}
		allow := func(channel string) {
			mu.Lock()
			defer mu.Unlock()
			may = channel
		}
		locktest.NoError(t, n.rdb.Ping(t.Context()).Err())
		n.server.Server().SetPreHook(func(c *server.Peer, cmd string, args ...string) bool {
			mu.Lock()
			defer mu.Unlock()
			if cmd != "SUBSCRIBE" {
				return false
			}
			if tries[args[0]]++; args[0] != may {
				c.WriteError("NOPERM No permissions to access a channel")
			}
			return args[0] != may
		})
		b, log := newBus(t, n.rdb, pubsub.Auto)
		good, bad := listen(b, "good"), listen(b, "bad")
		for i := range 60 {
			locktest.Sleep(5 * time.Second)
			want(t, bad, false, 0)
			listen(b, fmt.Sprint("newer", i)).Close()
		}
		if n := tried("bad"); n < 13 || n > 14 { // at 0, 1, 3, 7, 15, 31 s, and then each half minute, each up to a second late
			t.Errorf("tried %d times in 300 s", n)
		}
		allow("bad")
		locktest.Sleep(31 * time.Second)
		want(t, bad, true, 1)
		want(t, good, true, 1)
		locktest.Equal(t, "times that the live one was subscribed to", tried("good"), 1)
		locktest.Equal(t, "lines in the log", len(log.With("")), 1)

		locktest.Sleep(2 * time.Minute)
		short := listen(b, "short")
		locktest.Sleep(5 * time.Second)
		allow("short")
		locktest.Sleep(4 * time.Second)
		want(t, short, true, 1)
	})
}

// P10: where the server, or a proxy in front of it, does not know the command to subscribe, the bus keeps the connection, and logs one line.
func TestP10_AServerWithoutSubscriptions(t *testing.T) {
	for _, words := range []string{
		"ERR unknown command 'subscribe'", "unsupported command 'subscribe'", "ERR SUBSCRIBE is disabled, enable it with --pubsub option.",
		"ERR SUBSCRIBE is not supported in cluster mode yet",
	} {
		t.Run(words, func(t *testing.T) {
			virtual(t, func(t *testing.T, n *network) {
				locktest.NoError(t, n.rdb.Ping(t.Context()).Err())
				n.server.Server().SetPreHook(func(c *server.Peer, cmd string, _ ...string) bool {
					if cmd == "SUBSCRIBE" {
						c.WriteError(words)
					}
					return cmd == "SUBSCRIBE"
				})
				var dials atomic.Int64
				n.rdb.AddHook(locktest.DialHook(func() { dials.Add(1) }))
				b, log := newBus(t, n.rdb, pubsub.Auto)
				l := listen(b, "a")
				locktest.Sleep(5 * time.Minute)
				want(t, l, false, 0)
				locktest.Equal(t, "connections", dials.Load(), 1)
				if said := log.With(""); len(said) != 1 || !strings.Contains(said[0], "knows no subscriptions") {
					t.Errorf("logged: %q", said)
				}
			})
		})
	}
}

// A cluster that says in other words than Redis that it has no sharded channels has none: otherwise clients would ask for ever, and listen nowhere. One that
// refuses the password is asked again.
func TestAClusterWithoutShardedChannels(t *testing.T) {
	for words, without := range map[string]bool{
		"ERR Unknown subcommand": true, "ERR PUBSUB SHARDNUMSUB is not supported": true, "unsupported command 'pubsub'": true,
		"WRONGPASS invalid username-password pair or user is disabled.": false,
	} {
		virtual(t, func(t *testing.T, n *network) {
			locktest.NoError(t, n.rdb.Ping(t.Context()).Err())
			n.server.Server().SetPreHook(func(c *server.Peer, cmd string, args ...string) bool {
				switch {
				case cmd == "INFO":
					c.WriteBulk("# Cluster\r\ncluster_enabled:1\r\n")
				case cmd == "PUBSUB" && strings.EqualFold(args[0], "shardnumsub"):
					c.WriteError(words)
				default:
					return false
				}
				return true
			})
			one := n.rdb.Options()
			b, _ := newBus(t, allSlots(t, one.Addr, func(o *redis.ClusterOptions) {
				o.Dialer, o.Protocol, o.DisableIdentity, o.PoolSize = one.Dialer, one.Protocol, true, one.PoolSize
				o.ConnMaxIdleTime, o.MaintNotificationsConfig = one.ConnMaxIdleTime, one.MaintNotificationsConfig
			}), pubsub.Auto)
			if l := listen(b, "a"); without {
				locktest.Sleep(2 * time.Second)
				want(t, l, true, 1)
			}
			b.Sharded(t.Context())
			if _, known := b.Known(); known != without {
				t.Errorf("known: %v where the cluster says %q", known, words)
			}
		})
	}
}
