package rlock_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/fencelock/fencelock/rlock"
)

// cluster is real servers with all slots between them.
type cluster struct {
	*redistest.Cluster
	t *testing.T
}

func newCluster(t *testing.T, nodes int) *cluster {
	t.Helper()
	t.Parallel()
	return &cluster{redistest.Clustered(t, nodes, 0, "--cluster-node-timeout", "2000"), t}
}

// do sends a command to a node.
func (c *cluster) do(node int, args ...any) any {
	c.t.Helper()
	return c.Nodes[node].Do(args...)
}

// node is the one that has the key's slot.
func (c *cluster) node(key string) int {
	c.t.Helper()
	return c.SlotOf(key) * len(c.Nodes) / redistest.Slots
}

func (c *cluster) client(opts ...rlock.Option) *rlock.Client {
	c.t.Helper()
	return newClient(c.t, c.Client(), opts...)
}

// waits requires that somebody waits for a message about the lock, in the way that sharded says.
func (c *cluster) waits(name string, sharded bool) {
	c.t.Helper()
	channel := "redisson_lock__channel:{" + name + "}"
	sharded = sharded && c.Sharded()
	redistest.Eventually(c.t, bound, func() bool {
		if sharded {
			return c.do(c.node(name), "pubsub", "shardnumsub", channel).([]any)[1].(int64) > 0
		}
		for i := range c.Nodes {
			if c.do(i, "pubsub", "numsub", channel).([]any)[1].(int64) > 0 {
				return true
			}
		}
		return false
	}, "somebody waits for %q", name)
}

func TestP10_ClusterWakesBySlot(t *testing.T) {
	for _, nodes := range []int{1, 3} {
		for mode, sharding := range map[string][]rlock.Option{"auto": nil, "on": {rlock.WithShardedPubSub(true)}, "off": {rlock.WithShardedPubSub(false)}} {
			if nodes == 3 && mode == "on" {
				continue // what auto finds out
			}
			t.Run(fmt.Sprintf("%d nodes/%s", nodes, mode), func(t *testing.T) {
				c := newCluster(t, nodes)
				if mode == "on" && !c.Sharded() {
					redistest.Lacks(t, "this server has no sharded channels")
				}
				// The poll comes too late to be what wakes.
				opts := append(sharding, rlock.WithPollInterval(time.Minute))
				one, two := c.client(opts...), c.client(opts...)
				names := []string{"a", "b", "c", "{d}e", "f"}[:3+nodes/2]
				held := map[string]context.Context{}
				got := map[string]chan context.Context{}
				done := map[string]<-chan error{}
				slots := map[any]bool{}
				for _, name := range names {
					slots[c.do(0, "cluster", "keyslot", name)] = true
					l := fenced.NewLock(one, name)
					outer := takeToken(t, l, t.Context(), 1)
					held[name] = takeToken(t, l, outer, 2)
					locktest.NoError(t, l.Unlock(held[name]))
					held[name] = outer
					ch := make(chan context.Context, 1)
					got[name] = ch
					done[name] = locktest.Start(func() error {
						ctx, _, err := fenced.NewLock(two, name).LockAndGetToken(t.Context())
						ch <- ctx
						return err
					})
				}
				if len(slots) < 3 {
					t.Fatal("too few slots")
				}
				for _, name := range names {
					if !strings.Contains(name, "{") {
						c.waits(name, mode != "off")
					}
				}
				for _, name := range names {
					began := time.Now()
					locktest.NoError(t, fenced.NewLock(one, name).Unlock(held[name]))
					locktest.NoError(t, redistest.Await(t, bound, done[name], "the waiter for %s", name))
					within(t, began, soon, "the wake-up")
					locktest.NoError(t, fenced.NewLock(two, name).Unlock(<-got[name]))
				}
			})
		}
	}
}

// SSUBSCRIBE of two slots in one command is CROSSSLOT, and go-redis resubscribes to all in one: after a reconnect
// the waiters of a node's locks are woken as before.
func TestP10_ClusterReconnectsSlotBySlot(t *testing.T) {
	c := newCluster(t, 1)
	var log locktest.Log
	one := c.client()
	two := c.client(rlock.WithPollInterval(time.Minute), rlock.WithLogger(log.Logger()))
	names := []string{"a", "b", "c"}
	held := map[string]context.Context{}
	done := map[string]<-chan error{}
	for _, name := range names {
		var err error
		held[name], err = rlock.NewLock(one, name).Lock(t.Context())
		locktest.NoError(t, err)
		done[name] = locktest.Start(func() error { _, err := rlock.NewLock(two, name).Lock(t.Context()); return err })
	}
	for _, name := range names {
		c.waits(name, true)
	}
	c.do(0, "client", "kill", "type", "pubsub")
	for _, name := range names {
		c.waits(name, true)
	}
	for _, name := range names {
		began := time.Now()
		locktest.NoError(t, rlock.NewLock(one, name).Unlock(held[name]))
		locktest.NoError(t, redistest.Await(t, bound, done[name], "the waiter for %s", name))
		within(t, began, soon, "the wake-up")
	}
	if said := log.With("CROSSSLOT"); len(said) > 0 {
		t.Errorf("logged: %q", said)
	}
}

// Renewals go by slot, and to the node that has it.
func TestP14_ClusterRenewsEverySlot(t *testing.T) {
	c := newCluster(t, 3)
	var log locktest.Log
	cl := c.client(rlock.WithLogger(log.Logger()))
	held := map[string]context.Context{}
	on := map[int]bool{}
	for i := range 40 {
		name := fmt.Sprint("lock-", i)
		on[c.node(name)] = true
		var err error
		held[name], err = rlock.NewLock(cl, name).Lock(t.Context())
		locktest.NoError(t, err)
	}
	if len(on) != 3 {
		t.Fatalf("the locks are on %v", on)
	}
	left, renewed := map[string]time.Duration{}, map[string]bool{}
	redistest.Settles(t, 3*bound, func() bool {
		for name, ctx := range held {
			ttl, err := rlock.NewLock(cl, name).TTL(ctx)
			locktest.NoError(t, err)
			before, asked := left[name]
			renewed[name] = renewed[name] || asked && ttl > before
			left[name] = ttl
		}
		return !slices.Contains(slices.Collect(maps.Values(renewed)), false)
	}, "all leases are renewed: %v", renewed)
	for name, ctx := range held {
		locktest.NoError(t, ctx.Err())
		locktest.NoError(t, rlock.NewLock(cl, name).Unlock(ctx))
	}
	if all := log.With(""); len(all) > 0 {
		t.Errorf("logged: %q", all)
	}
}

// A node that is down takes the locks of its slots with it, and no others.
func TestInv12_ClusterNodeDown(t *testing.T) {
	c := newCluster(t, 3)
	const lease = 15 * time.Second
	cl, other := c.client(rlock.WithLease(lease)), c.client(rlock.WithPatience(500*time.Millisecond))
	names := map[int]string{}
	for i := 0; len(names) < 3; i++ {
		name := fmt.Sprint("lock-", i)
		names[c.node(name)] = name
	}
	held := map[int]context.Context{}
	for node, name := range names {
		var err error
		held[node], err = rlock.NewLock(cl, name).Lock(t.Context())
		locktest.NoError(t, err)
	}
	c.Nodes[1].Kill()
	began := time.Now()
	_, err := rlock.NewLock(other, "{"+names[1]+"}").TryLock(t.Context(), 0, 0)
	wantTold(t, err)
	within(t, began, 3*time.Second, "one try at a lock of a node that is down")
	redistest.Await(t, 2*bound, held[1].Done(), "the hold of its lock ends")
	locktest.IsError(t, context.Cause(held[1]), rlock.ErrLost)
	redistest.Eventually(t, bound, func() bool { return time.Since(began) > lease+time.Second }, "more than a lease passes")
	for _, node := range []int{0, 2} {
		locktest.NoError(t, held[node].Err())
		locktest.NoError(t, rlock.NewLock(cl, names[node]).Unlock(held[node]))
	}
}

func TestP16_NamesThatDoNotHashWithTheirCounter(t *testing.T) {
	c := newCluster(t, 1)
	cl := c.client()
	for _, name := range []string{"a{b", "a{}b", "{}", "a}b", "}x"} {
		l := fenced.NewLock(cl, name)
		for what, ask := range map[string]func() error{
			"Lock":     func() error { _, _, err := l.LockAndGetToken(t.Context()); return err },
			"TryLock":  func() error { _, _, err := l.TryLockAndGetToken(t.Context(), 0, 0); return err },
			"IsLocked": func() error { _, err := l.IsLocked(t.Context()); return err },
		} {
			if err := ask(); err == nil || !strings.Contains(err.Error(), "different slots") {
				t.Errorf("%s of %q: %v", what, name, err)
			}
		}
	}
	if n := c.do(0, "dbsize"); n != int64(0) {
		t.Errorf("%v keys are there", n)
	}
	for _, name := range []string{"a", "{b}", "c{d}e", "f{g}{h}", "i j"} {
		l := fenced.NewLock(cl, name)
		outer := takeToken(t, l, t.Context(), 1)
		inner := takeToken(t, l, outer, 2)
		locktest.NoError(t, l.Unlock(inner))
		locktest.NoError(t, l.Unlock(outer))
	}
}
