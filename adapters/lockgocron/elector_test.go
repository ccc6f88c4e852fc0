package lockgocron_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/fencelock/fencelock/adapters/lockgocron"
	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/realtime"
	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/fencelock/fencelock/rlock"
	"github.com/fencelock/fencelock/rlocktest"
)

func newElector(t *testing.T, client *rlock.Client) *lockgocron.Elector {
	t.Helper()
	elector, err := lockgocron.NewElector(client, leader)
	locktest.NoError(t, err)
	return elector
}

// The first one leads at once, for many leases. The next one follows when it steps down, or loses the lock. Then it campaigns again.
func TestElector(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, ctx := rlocktest.New(t), t.Context()
		one, two := newElector(t, s.Client()), (*lockgocron.Elector)(nil)
		locktest.NoError(t, one.IsLeader(ctx)) // the first call waits for the attempt
		two = newElector(t, s.Client())
		locktest.IsError(t, two.IsLeader(ctx), lockgocron.ErrNotLeader, rlock.ErrNotAcquired)
		time.Sleep(time.Hour)
		held, token, err := one.Leading(ctx)
		locktest.NoError(t, err)
		carried, _ := fenced.TokenFrom(held, leader)
		locktest.Equal(t, "the token in the context", carried, token)

		thief := s.Steal(leader)
		locktest.IsError(t, one.IsLeader(ctx), lockgocron.ErrNotLeader, rlock.ErrLost)
		locktest.IsError(t, context.Cause(held), rlock.ErrLost)
		thief.Unlock()
		synctest.Wait()
		s.Wait("one of them leads", func() bool { return one.IsLeader(ctx) == nil || two.IsLeader(ctx) == nil })
		if one.IsLeader(ctx) == nil {
			one, two = two, one
		}
		_, next, err := two.Leading(ctx)
		locktest.NoError(t, err)
		if next <= token {
			t.Errorf("token %d after %d", next, token)
		}
		locktest.IsError(t, one.IsLeader(ctx), lockgocron.ErrNotLeader)

		locktest.NoError(t, two.Close())
		locktest.IsError(t, two.IsLeader(ctx), lockgocron.ErrNotLeader, rlock.ErrClosed)
		s.Wait("the other one leads", func() bool { return one.IsLeader(ctx) == nil })
		locktest.NoError(t, one.Close())
		locktest.NoError(t, one.Close())
		locktest.Equal(t, "hold count", s.HoldCount(leader), 0)
	})
}

// IsLeader does not wait while Redis stands still, and the leader leads no longer than its lease. It leads again when Redis is back.
func TestElectorWithoutRedis(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, ctx := rlocktest.New(t), t.Context()
		client := s.Client()
		elector := newElector(t, client)
		locktest.NoError(t, elector.IsLeader(ctx))
		s.Stop(client)
		time.Sleep(time.Minute)
		began := time.Now()
		locktest.IsError(t, elector.IsLeader(ctx), lockgocron.ErrNotLeader)
		locktest.Equal(t, "the wait", time.Since(began), 0)
		s.Continue(client)
		s.Wait("it leads again", func() bool { return elector.IsLeader(ctx) == nil })
		locktest.NoError(t, elector.Close())

		s.Stop(client)
		elector = newElector(t, client)
		ended, end := context.WithCancel(ctx)
		end()
		locktest.IsError(t, elector.IsLeader(ended), lockgocron.ErrNotLeader, context.Canceled)
		began = time.Now()
		locktest.IsError(t, elector.IsLeader(ctx), lockgocron.ErrNotLeader)
		if waited := time.Since(began); waited > 2*time.Second {
			t.Errorf("the first call took %v", waited)
		}
		s.Continue(client)
		locktest.NoError(t, elector.Close())
	})
}

// An Elector whose client is closed campaigns no more: a bubble waits for all goroutines.
func TestElectorOfAClosedClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := rlocktest.New(t).Client()
		elector := newElector(t, client)
		locktest.NoError(t, elector.IsLeader(t.Context()))
		locktest.NoError(t, client.Close())
		synctest.Wait()
		locktest.IsError(t, elector.IsLeader(t.Context()), lockgocron.ErrNotLeader, rlock.ErrClosed)
	})
}

// Of three schedulers with an Elector each that of the leader runs the job.
func TestSchedulersWithElectors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, runs := rlocktest.New(t), make([]int, 3)
		ran := make(chan error, 100)
		for i := range runs {
			elector := newElector(t, s.Client())
			defer func() { locktest.NoError(t, elector.Close()) }()
			scheduler, err := gocron.NewScheduler(gocron.WithDistributedElector(elector))
			locktest.NoError(t, err)
			_, err = scheduler.NewJob(gocron.DurationJob(10*time.Second), gocron.NewTask(func(ctx context.Context) {
				_, _, err := elector.Leading(ctx)
				runs[i]++
				ran <- err
			}))
			locktest.NoError(t, err)
			scheduler.Start()
			defer func() { locktest.NoError(t, scheduler.Shutdown()) }()
			time.Sleep(2 * time.Second)
		}
		for range 3 {
			locktest.NoError(t, <-ran)
		}
		time.Sleep(9 * time.Second) // the schedulers of the other two tick
		synctest.Wait()
		locktest.DeepEqual(t, "runs", runs, []int{3, 0, 0})
	})
}

// A process follows when the leader's process has died.
func TestTwoProcessesElect(t *testing.T) {
	realtime.Test(t, "a second process with a lease of 6 s")
	t.Parallel()
	server := redistest.Real(t)
	client, err := rlock.New(server.Client())
	locktest.NoError(t, err)
	defer client.Close()
	other := locktest.StartSecond(t, server.Addr())
	other.Call("campaign")
	other.Call("lead")
	elector := newElector(t, client)
	locktest.IsError(t, elector.IsLeader(t.Context()), lockgocron.ErrNotLeader)
	other.Kill()
	redistest.Eventually(t, bound, func() bool { return elector.IsLeader(t.Context()) == nil }, "this process leads")
	locktest.NoError(t, elector.Close())
}
