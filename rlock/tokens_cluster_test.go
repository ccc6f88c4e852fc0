package rlock_test

import (
	"context"
	"slices"
	"sync"
	"testing"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/fencelock/fencelock/rlock"
)

// In a cluster slots move and replicas take over by command, one after the other, so that Redis loses nothing: the tokens of
// locks that are taken meanwhile grow in the order of the holds. Failovers of any other kind lose writes, and tokens with
// them. So may a failover by command while a slot moves, as both change the epochs of the nodes.
func TestInv2_ClusterTokensGrowOverMovesAndFailovers(t *testing.T) {
	t.Parallel()
	// A node that the machine holds up for a moment must not be taken for down. Each replica takes over once, as the next
	// election would have to wait for twice this time.
	c := redistest.Clustered(t, 3, 1, "--cluster-node-timeout", "30000")
	masters := slices.Clone(c.Nodes[:3])
	witnesses := map[string]*witness{}
	for _, names := range namesOnMasters(t, c, 1, masters...) {
		witnesses[names[0]] = &witness{}
	}
	ctx, stop := context.WithCancel(t.Context())
	var loops sync.WaitGroup
	defer loops.Wait()
	defer stop()
	for range 2 {
		client := newClient(t, c.Client(), rlock.WithPatience(failoverBound))
		for name, w := range witnesses {
			for range 2 {
				loops.Go(func() { takeAndGive(ctx, t, fenced.NewLock(client, name), w) })
			}
		}
	}
	goesOn := func(after string) {
		for name, w := range witnesses {
			before := w.count()
			redistest.Settles(t, failoverBound, func() bool { return t.Failed() || w.count() >= before+20 }, "%q is taken after %s", name, after)
		}
	}
	for _, node := range c.Nodes[3:] {
		for name := range witnesses {
			from := c.MasterOf(name)
			c.Move(c.SlotOf(name), from, masters[(slices.Index(masters, from)+1)%len(masters)])
		}
		goesOn("the moves")
		from := slices.IndexFunc(masters, func(m *redistest.Server) bool { return c.ReplicaOf(m) == node })
		c.Failover(node)
		masters[from] = node
		goesOn("the failover")
	}
}

// takeAndGive takes and gives back the lock until ctx ends or the test has failed.
func takeAndGive(ctx context.Context, t *testing.T, l *fenced.Lock, w *witness) {
	for !t.Failed() {
		held, token, err := l.LockAndGetToken(ctx)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			t.Error(err)
			return
		}
		leave, err := w.enter(token, held.Err)
		if err != nil {
			t.Errorf("%s: %v", l.Name(), err)
			return
		}
		leave()
		_ = l.Unlock(held) // one that is not answered goes on behind
	}
}

// count is how many holders have entered.
func (w *witness) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.holds
}
