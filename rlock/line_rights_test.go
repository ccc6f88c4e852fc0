package rlock_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/fencelock/fencelock/rlock"
)

// P30: a user without the right to the key of the line, or to any of its commands, locks, waits and is told as ever, and leaves nothing in
// the line; it is logged once. So is one without the right to the clients' channels.
func TestP30_NoRightToTheLine(t *testing.T) {
	const lacks = "rlock: the Redis user lacks a right to the line"
	for what, c := range map[string]struct {
		rights []any
		says   string
	}{
		"key":      {[]any{"~a", "~redisson_lock*", "allchannels", "+@all"}, lacks},
		"channels": {[]any{"~*", "resetchannels", "&redisson_lock*", "+@all"}, "pubsub: the Redis user may not subscribe"},
		"commands": {[]any{"~*", "allchannels", "+@all", "-@sortedset"}, lacks},
		"zrem":     {[]any{"~*", "allchannels", "+@all", "-zrem"}, lacks},
	} {
		t.Run(what, func(t *testing.T) {
			server := realServer(t)
			var log locktest.Log
			opts := []rlock.Option{rlock.WithLogger(log.Logger()), rlock.WithPollInterval(bound)}
			other := rlock.NewLock(newClient(t, server.Client()), "a")
			l := rlock.NewLock(newClient(t, newUser(t, server, c.rights...), opts...), "a")
			for range 3 {
				held, err := other.Lock(t.Context())
				locktest.NoError(t, err)
				var mine context.Context
				done := locktest.Start(func() (err error) { mine, err = l.Lock(t.Context()); return err })
				redistest.Eventually(t, bound, func() bool {
					return server.Client().PubSubNumSub(t.Context(), "redisson_lock__channel:{a}").Val()["redisson_lock__channel:{a}"] > 0
				}, "it listens on the lock's own channel")
				began := time.Now()
				locktest.NoError(t, other.Unlock(held))
				locktest.NoError(t, redistest.Await(t, bound, done, "the waiter"))
				within(t, began, 2*time.Second, "the wait for a free lock")
				if tickets := server.Client().ZRange(t.Context(), "fencelock_line:{a}", 0, -1).Val(); len(tickets) > 0 {
					t.Errorf("%q are in the line", tickets)
				}
				locktest.NoError(t, l.Unlock(mine))
			}
			if len(log.With(c.says)) != 1 {
				t.Errorf("logged: %q", log.With(""))
			}
		})
	}
}

// P33: in a cluster without sharded channels there is no line, as the count of who hears a message says nothing there. With
// them there is one.
func TestP33_LineInACluster(t *testing.T) {
	t.Parallel()
	c := redistest.Clustered(t, 2, 0)
	for name, sharding := range map[string][]rlock.Option{"sharded": nil, "not": {rlock.WithShardedPubSub(false)}} {
		opts := append(sharding, rlock.WithPollInterval(bound))
		for i := range 4 { // on both nodes
			name := fmt.Sprint(name, i)
			holder := rlock.NewLock(newClient(t, c.Client(), opts...), name)
			waiter := rlock.NewLock(newClient(t, c.Client(), opts...), name)
			held, err := holder.Lock(t.Context())
			locktest.NoError(t, err)
			var mine context.Context
			done := locktest.Start(func() (err error) { mine, err = waiter.Lock(t.Context()); return err })
			line := func() bool { return c.Client().Exists(t.Context(), "fencelock_line:{"+name+"}").Val() == 1 }
			listens := func() bool {
				for _, node := range c.Nodes {
					if node.Do("pubsub", "numsub", "redisson_lock__channel:{"+name+"}").([]any)[1].(int64) > 0 {
						return true
					}
				}
				return false
			}
			if sharding != nil || !c.Sharded() {
				redistest.Eventually(t, bound, listens, "the waiter of %q listens", name)
				if line() {
					t.Errorf("%q has a line", name)
				}
			} else {
				redistest.Eventually(t, bound, line, "the waiter of %q is in the line", name)
			}
			began := time.Now()
			locktest.NoError(t, holder.Unlock(held))
			locktest.NoError(t, redistest.Await(t, bound, done, "the waiter"))
			within(t, began, 2*time.Second, "the wait for a free lock")
			locktest.NoError(t, waiter.Unlock(mine))
		}
	}
}
