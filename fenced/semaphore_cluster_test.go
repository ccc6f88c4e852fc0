package fenced_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/redistest"
)

// inside is who has which slot, as the test sees it.
type inside struct {
	mu    sync.Mutex
	slots map[int]int64 // the tokens of those inside
	last  map[int]int64
	count int
}

// enter notes that a permit is used, and leave that it is not.
func (in *inside) enter(t *testing.T, p *fenced.Hold) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.slots[p.Slot()] != 0 {
		t.Errorf("Inv1: slot %d has the tokens %d and %d inside", p.Slot(), in.slots[p.Slot()], p.Token())
	}
	if p.Token() <= in.last[p.Slot()] {
		t.Errorf("Inv2: slot %d: token %d after %d", p.Slot(), p.Token(), in.last[p.Slot()])
	}
	in.slots[p.Slot()], in.last[p.Slot()] = p.Token(), p.Token()
	in.count++
}

func (in *inside) leave(p *fenced.Hold) {
	in.mu.Lock()
	defer in.mu.Unlock()
	delete(in.slots, p.Slot())
}

// In a cluster a semaphore is in one hash slot, and no slot is given twice while that moves to another node.
func TestSemaphoreInACluster(t *testing.T) {
	t.Parallel()
	cl := redistest.Clustered(t, 2, 0)
	in := &inside{slots: map[int]int64{}, last: map[int]int64{}}
	ctx, stop := context.WithCancel(t.Context())
	var refused atomic.Int64
	var all sync.WaitGroup
	for range 4 {
		s := fenced.NewSemaphore(newClient(t, countsRefused(cl, &refused)), "jobs", 3)
		for range 2 {
			all.Go(func() {
				for ctx.Err() == nil {
					err := s.Do(ctx, func(_ context.Context, p *fenced.Hold) error {
						in.enter(t, p)
						defer in.leave(p)
						time.Sleep(time.Millisecond)
						return nil
					})
					if err != nil && ctx.Err() == nil {
						t.Error(err)
						return
					}
				}
			})
		}
	}
	soFar := func() int {
		in.mu.Lock()
		defer in.mu.Unlock()
		return in.count
	}
	used := func(n int) {
		t.Helper()
		from := soFar()
		redistest.Eventually(t, 60*time.Second, func() bool { return soFar() >= from+n }, "%d permits more are used", n)
	}
	used(50)
	moves(t, cl, "{jobs}:0", &refused, "{jobs}:2", "redisson_lock_token:{jobs}:2", "fencelock_line_of:{jobs}:*")
	used(50)
	stop()
	all.Wait()
	for _, key := range []string{"{jobs}:0", "{jobs}:1", "{jobs}:2", "fencelock_line_of:{jobs}:*"} {
		redistest.Eventually(t, 60*time.Second, func() bool { return cl.Client().Exists(context.Background(), key).Val() == 0 }, "%s is gone", key)
	}
	locktest.Equal(t, "an error", t.Failed(), false)
}

// countsRefused returns a client of the cluster that counts the commands which a node has refused for a hash slot that moves.
func countsRefused(cl *redistest.Cluster, n *atomic.Int64) *redis.ClusterClient {
	rdb := cl.Client()
	rdb.AddHook(locktest.Hook(func(_ context.Context, _ redis.Cmder, send func() error) error {
		err := send()
		if redis.HasErrorPrefix(err, "TRYAGAIN") {
			n.Add(1)
		}
		return err
	}))
	return rdb
}

// moves moves the hash slot of this key to the other node, some of its keys before the others, and has commands refused in between.
func moves(t *testing.T, cl *redistest.Cluster, key string, refused *atomic.Int64, first ...string) {
	t.Helper()
	slot, from, to := cl.SlotOf(key), cl.MasterOf(key), cl.Nodes[0]
	if to == from {
		to = cl.Nodes[1]
	}
	more := func() {
		t.Helper()
		n := refused.Load()
		redistest.Eventually(t, 60*time.Second, func() bool { return refused.Load() >= n+10 }, "commands are refused while the slot moves")
	}
	cl.BeginMove(slot, from, to)
	more()
	cl.MoveKeys(slot, from, to, first...)
	more()
	cl.MoveKeys(slot, from, to)
	more()
	cl.EndMove(slot, from, to)
}

// In a cluster, while the hash slot of a read-write lock moves to another node, nobody is beside a writer, and tokens grow.
func TestReadWriteInACluster(t *testing.T) {
	t.Parallel()
	cl := redistest.Clustered(t, 2, 0)
	ctx, stop := context.WithCancel(t.Context())
	var refused, readers, writers, count atomic.Int64
	var last atomic.Int64 // the writers' token
	var all sync.WaitGroup
	for range 4 {
		l := fenced.NewRWLock(newClient(t, countsRefused(cl, &refused)), "page")
		reads := func(_ context.Context, token int64) error {
			readers.Add(1)
			defer readers.Add(-1)
			if writers.Load() != 0 || token < last.Load() {
				t.Errorf("Inv1: token %d reads beside a writer, or after token %d", token, last.Load())
			}
			time.Sleep(time.Millisecond)
			count.Add(1)
			return nil
		}
		writes := func(_ context.Context, token int64) error {
			if writers.Add(1) != 1 || readers.Load() != 0 || token <= last.Swap(token) {
				t.Errorf("Inv1: token %d writes beside %d readers", token, readers.Load())
			}
			time.Sleep(time.Millisecond)
			writers.Add(-1)
			count.Add(1)
			return nil
		}
		for i := range 3 {
			side, do := l.Read(), reads
			if i == 0 {
				side, do = l.Write(), writes
			}
			all.Go(func() {
				for ctx.Err() == nil {
					if err := side.Do(ctx, do); err != nil && ctx.Err() == nil {
						t.Error(err)
						return
					}
				}
			})
		}
	}
	used := func() {
		t.Helper()
		from := count.Load()
		redistest.Eventually(t, 60*time.Second, func() bool { return count.Load() >= from+100 }, "100 holds more")
	}
	used()
	moves(t, cl, "{page}", &refused, "page", "redisson_lock_token:{page}", "fencelock_line:{page}")
	used()
	stop()
	all.Wait()
	redistest.Eventually(t, 60*time.Second, func() bool { return cl.Client().Exists(context.Background(), "page").Val() == 0 }, "the lock is free")
}

// P30: a user without the right to the line waits for a permit all the same, by the release that is told to all and by polls.
func TestP30_PermitsWithoutTheRightToTheLine(t *testing.T) {
	t.Parallel()
	server := redistest.Real(t)
	locktest.NoError(t, server.Client().Do(t.Context(), "acl", "setuser", "limited", "on", ">secret",
		"~{jobs}:*", "~redisson_lock*", "allchannels", "+@all").Err())
	limited := server.Client(func(o *redis.Options) { o.Username, o.Password = "limited", "secret" })
	s := fenced.NewSemaphore(newClient(t, limited), "jobs", 2)
	other := fenced.NewSemaphore(newClient(t, server.Client()), "jobs", 2)
	for _, waits := range []*fenced.Semaphore{s, other} {
		a, b := acquirePermit(t, s), acquirePermit(t, other)
		got := locktest.Start(func() error {
			return waits.Do(t.Context(), func(context.Context, *fenced.Hold) error { return nil })
		})
		select {
		case err := <-got:
			t.Fatalf("it does not wait: %v", err)
		case <-time.After(100 * time.Millisecond):
		}
		locktest.NoError(t, a.Unlock(t.Context()))
		locktest.NoError(t, redistest.Await(t, 20*time.Second, got, "the waiter"))
		locktest.NoError(t, b.Unlock(t.Context()))
	}
}
