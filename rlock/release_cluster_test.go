package rlock_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/redistest"
	"github.com/fencelock/fencelock/rlock"
)

// lostAnswers loses the answer to the first acquire of the lock with this name.
type lostAnswers struct {
	name string
	lost bool
}

func (h *lostAnswers) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (h *lostAnswers) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (h *lostAnswers) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if err == nil && !h.lost && slices.Contains(cmd.Args(), any(h.name)) {
			h.lost = true
			return io.EOF
		}
		return err
	}
}

// A node that hangs does not keep what was given up on another node from being released (P3).
func TestP3_AHungNodeDoesNotKeepTheReleasesOfOthers(t *testing.T) {
	cluster := faultNewCluster(t, 3)
	rdb := cluster.Client()
	c := faultClient(t, rdb)
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
	bhOK(t, warm.Unlock(bhLock(t, warm, t.Context())))
	cluster.Nodes[0].Freeze()
	var all sync.WaitGroup
	for _, name := range hung {
		ctx := faultTimeout(t, t.Context(), 500*time.Millisecond)
		all.Go(func() { _, _ = rlock.NewLock(c, name).Lock(ctx) })
	}
	all.Wait()
	rdb.AddHook(&lostAnswers{name: healthy})
	_, err := rlock.NewLock(c, healthy).TryLock(faultTimeout(t, t.Context(), 5*time.Millisecond), 0, 0)
	if !errors.Is(err, io.EOF) && !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("error %v", err)
	}
	// Its lease is 30 s.
	redistest.Eventually(t, 20*time.Second, func() bool {
		return cluster.do(1, "exists", healthy) == int64(0)
	}, "the lock of the healthy node is free")
	cluster.Nodes[0].Thaw()
}
