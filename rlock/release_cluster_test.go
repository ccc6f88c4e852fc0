package rlock_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/fencelock/fencelock/rlock"
)

// loseAnswers returns a hook that loses the answers to all commands with the name of this lock that do not release it.
func loseAnswers(name string) locktest.Hook {
	return func(_ context.Context, cmd redis.Cmder, send func() error) error {
		err := send()
		if err == nil && slices.Contains(cmd.Args(), any(name)) && !slices.Contains(locktest.Ops(cmd.Args()), "unlock") {
			return io.EOF
		}
		return err
	}
}

// A node that hangs does not keep what was given up on another node from being released (P3).
func TestP3_AHungNodeDoesNotKeepTheReleasesOfOthers(t *testing.T) {
	cluster := newCluster(t, 3)
	rdb := cluster.Client()
	c := newClient(t, rdb)
	healthy := ""
	var hung []string
	for i := 0; len(hung) < 300 || healthy == ""; i++ {
		name := fmt.Sprint("l", i)
		switch cluster.node(name) {
		case 0:
			hung = append(hung, name)
		case 1:
			healthy = name
		}
	}
	warm := rlock.NewLock(c, healthy)
	locktest.NoError(t, warm.Unlock(take(t, warm, t.Context())))
	cluster.Nodes[0].Freeze()
	var all sync.WaitGroup
	for _, name := range hung {
		ctx := withTimeout(t, t.Context(), 500*time.Millisecond)
		all.Go(func() { _, _ = rlock.NewLock(c, name).Lock(ctx) })
	}
	all.Wait()
	rdb.AddHook(loseAnswers(healthy))
	_, err := rlock.NewLock(c, healthy).TryLock(withTimeout(t, t.Context(), 5*time.Millisecond), 0, 0)
	if !errors.Is(err, io.EOF) && !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("error %v", err)
	}
	// Its lease is 30 s.
	redistest.Eventually(t, 20*time.Second, func() bool {
		return cluster.do(1, "exists", healthy) == int64(0)
	}, "the lock of the healthy node is free")
	cluster.Nodes[0].Thaw()
}
