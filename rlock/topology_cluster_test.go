package rlock_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/fencelock/fencelock/rlock"
)

// namesOnMasters returns so many names of locks for each of the masters, in slots of their own.
func namesOnMasters(t *testing.T, c *redistest.Cluster, each int, masters ...*redistest.Server) map[*redistest.Server][]string {
	t.Helper()
	names, found := map[*redistest.Server][]string{}, 0
	for i := 0; found < each*len(masters); i++ {
		name := fmt.Sprint("lock-", i)
		if m := c.MasterOf(name); slices.Contains(masters, m) && len(names[m]) < each {
			names[m] = append(names[m], name)
			found++
		}
	}
	return names
}

// awaitListening waits until somebody listens to the channels of these locks at the node, to sharded ones or not.
func awaitListening(t *testing.T, c *redistest.Cluster, node *redistest.Server, sharded bool, locks []*contested) {
	t.Helper()
	nodes, ask := c.Nodes, "numsub" // a subscription may be at any node
	if sharded && c.Sharded() {
		nodes, ask = []*redistest.Server{node}, "shardnumsub"
	}
	for _, l := range locks {
		redistest.Settles(t, failoverBound, func() bool {
			n := int64(0)
			for _, node := range nodes {
				if node.Running() {
					n += node.Do("pubsub", ask, "redisson_lock__channel:{"+l.Name()+"}").([]any)[1].(int64)
				}
			}
			return n > 0
		}, "somebody listens for %q", l.Name())
	}
}

// Slots move to another node while their locks are held and waited for: no hold is lost, whatever part of its keys has
// moved, re-entries and releases ride out what takes no answer for now, and waiters are told at the new node.
func TestClusterResharding(t *testing.T) {
	t.Parallel()
	for how, sharding := range map[string][]rlock.Option{"sharded messages": nil, "messages to all": {rlock.WithShardedPubSub(false)}} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			c := redistest.Clustered(t, 3, 0, "--cluster-node-timeout", "5000")
			// The poll comes too late to be what wakes.
			opts := append(sharding, rlock.WithLease(18*time.Second), rlock.WithPatience(failoverBound), rlock.WithPollInterval(time.Minute))
			one, two := newClient(t, c.Client(), opts...), newClient(t, c.Client(), opts...)
			from, to := c.Nodes[0], c.Nodes[1]
			names := namesOnMasters(t, c, 4, c.Nodes...)
			moving := contest(t, one, two, 0, names[from]...)
			staying := contest(t, one, two, 0, append(names[to], names[c.Nodes[2]]...)...)

			var reentries, fresh []<-chan locktest.Result
			for _, l := range moving {
				slot := c.SlotOf(l.Name())
				c.BeginMove(slot, from, to)
				l.intact(t) // all its keys are here
				c.MoveKeys(slot, from, to, l.Name())
				// The lock is there and its counter here: nobody can do what needs both. Nor can a lock be taken anew.
				reentries = append(reentries, locktest.StartFenced(func() (context.Context, int64, error) { return l.LockAndGetToken(l.held) }))
				fresh = append(fresh, locktest.StartFenced(func() (context.Context, int64, error) {
					return withClockFloor(one, "{"+l.Name()+"}new").LockAndGetToken(t.Context())
				}))
			}
			awaitRenewals(t, moving)
			for i, l := range moving {
				select {
				case got := <-reentries[i]:
					t.Fatalf("a re-entry of %q without its counter: %v", l.Name(), got.Err)
				case got := <-fresh[i]:
					t.Fatalf("a new lock in the slot of %q: %v", l.Name(), got.Err)
				default:
				}
				slot := c.SlotOf(l.Name())
				c.MoveKeys(slot, from, to)
				c.EndMove(slot, from, to)
				got := redistest.Await(t, failoverBound, reentries[i], "the re-entry of %s", l.Name())
				locktest.NoError(t, got.Err)
				l.token = got.Token
				locktest.NoError(t, l.Unlock(got.Ctx))
				got = redistest.Await(t, failoverBound, fresh[i], "the new lock in the slot of %s", l.Name())
				locktest.NoError(t, got.Err)
				locktest.NoError(t, withClockFloor(one, "{"+l.Name()+"}new").Unlock(got.Ctx))
			}
			awaitRenewals(t, slices.Concat(moving, staying))
			awaitListening(t, c, to, sharding == nil, moving)
			for _, l := range slices.Concat(moving, staying) {
				l.intact(t)
				began := time.Now()
				l.pass(t)
				within(t, began, soon, "the waiter's turn at "+l.Name())
			}
			wantClean(t, []*rlock.Client{one, two}, c.Nodes...)
		})
	}
}

// A replica takes over from a master while that one's locks are held and waited for. What it has heard of goes on there;
// a lock that it has not heard of is lost, which the next renewal finds out; those of the other masters notice nothing.
func TestClusterFailover(t *testing.T) {
	t.Parallel()
	for how, sharding := range map[string][]rlock.Option{"command": nil, "kill": nil, "kill, messages to all": {rlock.WithShardedPubSub(false)}} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			c := redistest.Clustered(t, 3, 1)
			opts := append(sharding, rlock.WithLease(failoverLease), rlock.WithPatience(failoverBound), rlock.WithPollInterval(time.Minute))
			one, two := newClient(t, c.Client(), opts...), newClient(t, c.Client(), opts...)
			old := c.Nodes[0]
			replica := c.ReplicaOf(old)
			names := namesOnMasters(t, c, 4, c.Nodes[:3]...)
			lost := rlock.NewLock(one, names[old][3])
			locks := contest(t, one, two, 0, names[old][:3]...)
			others := contest(t, one, two, 0, append(names[c.Nodes[1]], names[c.Nodes[2]]...)...)
			(&redistest.Replication{Master: old, Replicas: []*redistest.Server{replica}}).Sync()

			if how == "command" {
				c.Failover(replica)
			} else {
				replica.Detach()
				lostCtx, err := lost.Lock(t.Context())
				locktest.NoError(t, err)
				old.Kill()
				redistest.Await(t, failoverBound, lostCtx.Done(), "the loss is noticed")
				cause := context.Cause(lostCtx)
				locktest.IsError(t, cause, rlock.ErrLost)
				if !strings.Contains(cause.Error(), "its key is gone") { // and not: the lease ran out
					t.Errorf("no renewal has found out: %v", cause)
				}
				locktest.IsError(t, lost.Unlock(lostCtx), rlock.ErrLost)
			}
			awaitRenewals(t, locks)
			for _, l := range slices.Concat(locks, others) {
				l.intact(t)
			}
			awaitListening(t, c, replica, sharding == nil, locks)
			for _, l := range slices.Concat(locks, others) {
				began := time.Now()
				l.pass(t)
				within(t, began, soon, "the waiter's turn at "+l.Name())
			}
			wantClean(t, []*rlock.Client{one, two}, replica, c.Nodes[1], c.Nodes[2])
		})
	}
}
