package fenced_test

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/rlock"
)

// replicas answer each WAIT: so many are too few, and the next ones enough.
type replicas struct{ tooFew atomic.Int32 }

func (*replicas) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (*replicas) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (r *replicas) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		err := next(ctx, cmds)
		for _, cmd := range cmds {
			if cmd.Name() == "wait" {
				n := int64(1)
				if r.tooFew.Add(-1) >= 0 {
					n = 0
				}
				cmd.SetErr(nil)
				cmd.(interface{ SetVal(any) }).SetVal(n)
				err = nil
			}
		}
		return err
	}
}

// P43: what replicas have not confirmed was taken all the same: it is released, and the next attempt
// has a field of its own. A permit takes no second slot, and nobody waits for a lease of its own.
func TestP43_WhatReplicasHaveNotConfirmed(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		r := new(replicas)
		rdb.AddHook(r)
		c, err := rlock.New(rdb, rlock.WithReplicas(1, 20*time.Millisecond))
		locktest.NoError(t, err)
		defer func() { _ = c.Close() }()
		rw, jobs := fenced.NewRWLock(c, "rw"), fenced.NewSemaphore(c, "jobs", 3)
		for _, tooFew := range []int32{0, 1} { // the scripts are loaded by the first
			for _, l := range []*fenced.Lock{rw.Write(), rw.Read()} {
				r.tooFew.Store(tooFew)
				began := time.Now()
				h, err := l.Acquire(t.Context())
				locktest.NoError(t, err)
				locktest.NoError(t, h.Unlock(t.Context()))
				if took := time.Since(began); took > time.Second {
					t.Errorf("it took %v", took)
				}
			}
		}
		p, err := jobs.Acquire(t.Context())
		locktest.NoError(t, err)
		locktest.NoError(t, p.Unlock(t.Context()))
		r.tooFew.Store(1)
		p, err = jobs.Acquire(t.Context())
		locktest.NoError(t, err)
		locktest.Sleep(2 * time.Second)
		locktest.DeepEqual(t, "the slots that are taken", taken(m, jobs, 3), []int{p.Slot()})
		locktest.NoError(t, p.Unlock(t.Context()))
	})
}
