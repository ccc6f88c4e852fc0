package leader_test

import (
	"testing"
	"time"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/fencelock/fencelock/leader"
	"github.com/fencelock/fencelock/rlock"
)

// In a cluster the messages are sharded.
func TestWatchInACluster(t *testing.T) {
	cluster := redistest.Clustered(t, 3, 0)
	newClient := func() *rlock.Client {
		client, err := rlock.New(cluster.Client(), rlock.WithPollInterval(time.Hour))
		locktest.NoError(t, err)
		t.Cleanup(func() { _ = client.Close() })
		return client
	}
	leaders, err := leader.Watch(t.Context(), newClient(), "scheduler")
	locktest.NoError(t, err)
	tells(t, leaders, 0, time.Minute)
	channel := "fencelock_line:{scheduler}:term"
	redistest.Eventually(t, time.Minute, func() bool {
		listeners := cluster.MasterOf("scheduler").Client().PubSubNumSub(t.Context(), channel).Val()
		if cluster.Sharded() {
			listeners = cluster.MasterOf("scheduler").Client().PubSubShardNumSub(t.Context(), channel).Val()
		}
		return listeners[channel] == 1
	}, "the watcher listens")
	e, err := leader.New(fenced.NewLock(newClient(), "scheduler"))
	locktest.NoError(t, err)
	term := leads(t, e)
	tells(t, leaders, term.Token(), time.Minute)
	locktest.NoError(t, term.StepDown(t.Context()))
	tells(t, leaders, 0, time.Minute)
}
