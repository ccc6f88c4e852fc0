package redistest_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/redis/go-redis/v9"
)

// takes requires that the client can write, and gives it time.
func takes(t *testing.T, c redis.UniversalClient, key string) {
	t.Helper()
	redistest.Eventually(t, bound, func() bool { return c.Set(ctx, key, 1, 0).Err() == nil }, "%q is written", key)
}

func TestReplicated(t *testing.T) {
	t.Parallel()
	r := redistest.Replicated(t, 2)
	master := r.Master.Client()
	locktest.NoError(t, master.Set(ctx, "n", 1, 0).Err())
	if n, err := master.Wait(ctx, 2, bound).Result(); err != nil || n != 2 {
		t.Fatalf("WAIT says %d, %v", n, err)
	}
	for _, replica := range r.Replicas {
		want(t, replica.Client(), "1")
	}

	for _, replica := range r.Replicas {
		replica.Detach()
	}
	locktest.NoError(t, master.Set(ctx, "n", 2, 0).Err())
	if n, err := master.Wait(ctx, 1, 50*time.Millisecond).Result(); err != nil || n != 0 {
		t.Errorf("WAIT says %d, %v", n, err)
	}
	for _, replica := range r.Replicas {
		want(t, replica.Client(), "1")
		replica.Attach()
	}
	r.Sync()
	want(t, r.Replicas[1].Client(), "2")

	r.Replicas[0].Kill()
	locktest.NoError(t, master.Set(ctx, "n", 3, 0).Err())
	r.Replicas[0].Restart()
	r.Sync()
	want(t, r.Replicas[0].Client(), "3")
}

func TestSentinels(t *testing.T) {
	t.Parallel()
	s := redistest.Watched(t, 2)
	c := s.Client()
	takes(t, c, "n")
	first := s.Master()
	if first != s.Nodes[0] {
		t.Fatalf("the master is %s", first.Addr())
	}

	second := s.Failover() // by command
	if second == first || !slices.Contains(s.Nodes, second) {
		t.Fatalf("the new master is %s", second.Addr())
	}
	takes(t, c, "m")
	want(t, c, "1")
	s.Settle()

	s.RestartSentinel(0)
	second.Kill()
	s.AwaitMaster(second)
	takes(t, c, "m")
	second.Restart()
	s.Settle() // with any master: on a busy machine Sentinels promote another one unasked
	takes(t, c, "o")
	want(t, c, "1")
}

func TestClustered(t *testing.T) {
	t.Parallel()
	c := redistest.Clustered(t, 3, 1)
	// Where a node is down nothing but a look at the others tells who has taken over.
	rdb := c.Client(func(o *redis.ClusterOptions) { o.ClusterStateReloadInterval = 100 * time.Millisecond })
	const key = "n"
	takes(t, rdb, key)
	first := c.MasterOf(key)
	second := c.ReplicaOf(first)

	c.Failover(second)
	if c.MasterOf(key) != second || c.ReplicaOf(second) != first || !slices.Contains(c.Masters(), second) || len(c.Masters()) != 3 {
		t.Fatal("the replica has not taken over")
	}
	takes(t, rdb, key)

	second.Kill()
	c.AwaitMaster(first)
	takes(t, rdb, key)
	second.Restart()
	c.Settle()
	if c.ReplicaOf(first) != second {
		t.Error("the node that was down is no replica")
	}
}

func TestClusteredMoves(t *testing.T) {
	t.Parallel()
	c := redistest.Clustered(t, 2, 0)
	rdb := c.Client()
	const key, other = "n", "{n}2"
	takes(t, rdb, key)
	takes(t, rdb, other)
	slot, from := c.SlotOf(key), c.MasterOf(key)
	to := c.Nodes[1-slices.Index(c.Nodes, from)]
	c.BeginMove(slot, from, to)
	c.MoveKeys(slot, from, to, key)
	if err := from.Client().Get(ctx, key).Err(); err == nil || !redis.HasErrorPrefix(err, "ASK") {
		t.Errorf("the key that has moved: %v", err)
	}
	if got, err := rdb.Get(ctx, other).Result(); err != nil || got != "1" {
		t.Errorf("the key that has not moved: %q, %v", got, err)
	}
	c.MoveKeys(slot, from, to)
	c.EndMove(slot, from, to)
	if c.MasterOf(key) != to {
		t.Error("the slot has not moved")
	}
	want(t, to.Client(), "1")
	for i := range 250 {
		takes(t, rdb, fmt.Sprint("{n}", i))
	}
	c.Move(slot, to, from)
	if n := from.Do("cluster", "countkeysinslot", slot); n != int64(252-1) { // {n}2 is one of the 250
		t.Errorf("%v keys are there", n)
	}
	if err := to.Client().Get(ctx, key).Err(); errors.Is(err, redis.Nil) || err == nil {
		t.Errorf("the old owner says %v", err)
	}
}
