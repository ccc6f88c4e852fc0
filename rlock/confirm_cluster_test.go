package rlock_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/fencelock/fencelock/rlock"
)

// confirmNames is a name of a lock for each master of the cluster.
func confirmNames(c *redistest.Cluster, masters int) map[*redistest.Server]string {
	names := make(map[*redistest.Server]string)
	for i := 0; len(names) < masters; i++ {
		name := fmt.Sprint("lock-", i)
		if m := c.MasterOf(name); names[m] == "" {
			names[m] = name
		}
	}
	return names
}

// In a cluster it is the replicas of the lock's own master that confirm; what goes to several at once is confirmed by each;
// redirects, a failover and a slot on its way are ridden out.
func TestConfirm_Cluster(t *testing.T) {
	t.Parallel()
	cluster := redistest.Clustered(t, 3, 1)
	rdb := cluster.Client()
	client := newClient(t, rdb, rlock.WithReplicas(1, 500*time.Millisecond), rlock.WithPatience(time.Minute), rlock.WithLease(10*time.Minute))
	names := confirmNames(cluster, 3)
	masters := cluster.Nodes[:3]
	all := func(what string, unconfirmed *redistest.Server) {
		t.Helper()
		type result struct {
			master *redistest.Server
			err    error
		}
		results := make(chan result)
		for _, m := range masters {
			go func() {
				held, err := rlock.NewLock(client, names[m]).TryLock(t.Context(), 0, 0)
				if err == nil {
					err = rlock.NewLock(client, names[m]).Unlock(held)
				}
				results <- result{m, err}
			}()
		}
		for range masters {
			switch r := <-results; {
			case r.master == unconfirmed:
				locktest.IsError(t, r.err, rlock.ErrUnconfirmed)
			case r.err != nil:
				t.Errorf("%s: %v", what, r.err)
			}
		}
	}
	all("with all replicas", nil)
	for _, m := range masters {
		replica := cluster.ReplicaOf(m)
		replica.Freeze()
		all("without one", m)
		replica.Thaw()
		cluster.Settle()
	}

	t.Run("slot on its way", func(t *testing.T) {
		from, to := masters[0], masters[1]
		name := names[from]
		slot := cluster.SlotOf(name)
		l := fenced.NewLock(client, name)
		held, token, err := l.LockAndGetToken(t.Context())
		locktest.NoError(t, err)
		cluster.BeginMove(slot, from, to)
		cluster.MoveKeys(slot, from, to, name, "redisson_lock_token:{"+name+"}")
		var nested context.Context
		var again int64
		done := locktest.Start(func() (err error) { nested, again, err = l.LockAndGetToken(held); return err })
		time.Sleep(100 * time.Millisecond) // it may ask in vain meanwhile
		cluster.EndMove(slot, from, to)
		locktest.NoError(t, redistest.Await(t, bound, done, "the re-entry"))
		if again != token+1 {
			t.Errorf("tokens %d and %d", token, again)
		}
		locktest.NoError(t, l.Unlock(nested))
		locktest.NoError(t, l.Unlock(held))
	})
	t.Run("failover", func(t *testing.T) {
		master := masters[2]
		l := fenced.NewLock(client, names[master])
		held, token, err := l.LockAndGetToken(t.Context())
		locktest.NoError(t, err)
		master.Kill()
		cluster.AwaitMaster(cluster.Nodes[5])
		if err := held.Err(); err != nil {
			t.Errorf("what a replica has is lost: %v", err)
		}
		// The new master has no replica: nothing counts, and it says so.
		redistest.Eventually(t, bound, func() bool { // first go-redis has to find it
			_, _, err = l.TryLockAndGetToken(held, 3*time.Second, 0)
			return err == nil || errors.Is(err, rlock.ErrUnconfirmed)
		}, "the new master answers")
		locktest.IsError(t, err, rlock.ErrUnconfirmed)
		master.Restart()
		nested, again, err := l.LockAndGetToken(held)
		locktest.NoError(t, err)
		if again <= token {
			t.Errorf("tokens %d and %d", token, again)
		}
		locktest.NoError(t, l.Unlock(nested))
		locktest.NoError(t, l.Unlock(held))
	})
}
