package lockgocron_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/fencelock/fencelock/adapters/lockgocron"
	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/realtime"
	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/fencelock/fencelock/rlock"
	"github.com/fencelock/fencelock/rlocktest"
)

func newLocker(t *testing.T, client *rlock.Client, opts ...lockgocron.Option) *lockgocron.Locker {
	t.Helper()
	locker, err := lockgocron.NewLocker(client, opts...)
	locktest.NoError(t, err)
	t.Cleanup(func() { locktest.NoError(t, locker.Close()) })
	return locker
}

// rounds counts how often a job runs that three processes have, each ten seconds, at shifted times.
func rounds(t *testing.T, opts ...lockgocron.Option) (runs int64) {
	synctest.Test(t, func(t *testing.T) {
		var n atomic.Int64
		s, begin := rlocktest.New(t), time.Now()
		for i := range 3 {
			scheduler, err := gocron.NewScheduler(gocron.WithDistributedLocker(newLocker(t, s.Client(), opts...)))
			locktest.NoError(t, err)
			_, err = scheduler.NewJob(gocron.DurationJob(10*time.Second), gocron.NewTask(func() { n.Add(1) }),
				gocron.WithName("report"), gocron.WithStartAt(gocron.WithStartDateTime(begin.Add(time.Second+time.Duration(i)*2*time.Second))))
			locktest.NoError(t, err)
			scheduler.Start()
			defer func() { locktest.NoError(t, scheduler.Shutdown()) }()
		}
		time.Sleep(29 * time.Second) // from second 1, 3 and 5 on: three rounds
		runs = n.Load()
	})
	return runs
}

// Schedulers whose ticks are apart run a short job once with a minimum hold, and once each without.
func TestShiftedTickers(t *testing.T) {
	locktest.Equal(t, "runs without a minimum", rounds(t), 9)
	locktest.Equal(t, "runs with one", rounds(t, lockgocron.WithMinimumHold(6*time.Second)), 3)
}

// A job keeps its lock for as long as it runs: for many leases, and when a shutdown has ended its context.
func TestLongJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := rlocktest.New(t)
		mine, others := newLocker(t, s.Client()), newLocker(t, s.Client())
		ctx, shutdown := context.WithCancel(t.Context())
		lock, err := mine.Lock(ctx, "a")
		locktest.NoError(t, err)
		time.Sleep(10 * time.Minute)
		shutdown()
		time.Sleep(10 * time.Minute)
		_, err = others.Lock(t.Context(), "a")
		locktest.IsError(t, err, rlock.ErrNotAcquired)
		locktest.NoError(t, lock.Unlock(ctx))
		lock, err = others.Lock(t.Context(), "a")
		locktest.NoError(t, err)
		locktest.NoError(t, lock.Unlock(t.Context()))
	})
}

// The minimum counts from the acquire, is kept over many leases, and holds up no longer job.
func TestMinimumHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := rlocktest.New(t)
		mine, others := newLocker(t, s.Client(), lockgocron.WithMinimumHold(5*time.Minute)), newLocker(t, s.Client(), lockgocron.WithPrefix("gocron:job:"))
		run := func(length time.Duration) {
			t.Helper()
			lock, err := mine.Lock(t.Context(), "a")
			locktest.NoError(t, err)
			time.Sleep(length)
			ended, end := context.WithCancel(t.Context())
			end()
			locktest.NoError(t, lock.Unlock(ended))
		}
		free := func() bool {
			t.Helper()
			lock, err := others.Lock(t.Context(), "a")
			if err != nil {
				locktest.IsError(t, err, rlock.ErrNotAcquired)
				return false
			}
			locktest.NoError(t, lock.Unlock(t.Context()))
			return true
		}
		run(time.Minute)
		time.Sleep(4*time.Minute - time.Second)
		locktest.Equal(t, "free before the minimum", free(), false)
		time.Sleep(2 * time.Second)
		locktest.Equal(t, "free after the minimum", free(), true)
		run(6 * time.Minute)
		locktest.Equal(t, "free after a job that was longer than the minimum", free(), true)

		// Close gives up the rest of the minimum.
		run(time.Second)
		locktest.NoError(t, mine.Close())
		locktest.Equal(t, "free after Close", free(), true)
		_, err := mine.Lock(t.Context(), "a")
		locktest.IsError(t, err, rlock.ErrClosed)
		locktest.NoError(t, mine.Close())
	})
}

// The client's Shutdown lets the minimum pass.
func TestMinimumHoldAtShutdown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := rlocktest.New(t).Client()
		mine := newLocker(t, client, lockgocron.WithMinimumHold(5*time.Minute))
		began := time.Now()
		lock, err := mine.Lock(t.Context(), "a")
		locktest.NoError(t, err)
		locktest.NoError(t, lock.Unlock(t.Context()))
		locktest.NoError(t, client.Shutdown(t.Context()))
		if took := time.Since(began); took < 5*time.Minute {
			t.Errorf("the client was down after %v", took)
		}
	})
}

// A job that runs when its Locker is closed keeps the lock until it ends, and not for the minimum.
func TestCloseWhileAJobRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := rlocktest.New(t)
		mine := newLocker(t, s.Client(), lockgocron.WithMinimumHold(time.Hour))
		lock, err := mine.Lock(t.Context(), "a")
		locktest.NoError(t, err)
		locktest.NoError(t, mine.Close())
		locktest.Equal(t, "hold count", s.HoldCount("gocron:job:a"), 1)
		locktest.NoError(t, lock.Unlock(t.Context()))
		locktest.Equal(t, "hold count", s.HoldCount("gocron:job:a"), 0)
	})
}

// The end of a job says that its lock was lost, at once, and leaves the next holder's alone.
func TestLostWhileAJobRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := rlocktest.New(t)
		mine := newLocker(t, s.Client(), lockgocron.WithMinimumHold(time.Hour))
		lock, err := mine.Lock(t.Context(), "a")
		locktest.NoError(t, err)
		thief := s.Steal("gocron:job:a")
		locktest.IsError(t, lock.Unlock(t.Context()), rlock.ErrLost)
		locktest.Equal(t, "hold count", s.HoldCount("gocron:job:a"), 1)
		thief.Unlock()
	})
}

// Two processes with a scheduler each: one runs the job, the other skips it, also after the end of the job, until the first gives it up.
func TestTwoProcesses(t *testing.T) {
	realtime.Test(t, "a second process with a lease of 6 s")
	t.Parallel()
	server := redistest.Real(t)
	rdb := server.Client()
	client, err := rlock.New(rdb)
	locktest.NoError(t, err)
	defer client.Close()
	other := locktest.StartSecond(t, server.Addr())
	other.Call("schedule")
	locktest.NoError(t, rdb.BLPop(t.Context(), bound, "begun").Err())

	locker, skips := newLocker(t, client), make(chan error, 1)
	scheduler, err := schedule(rdb, locker, func(err error) { skips <- err })
	locktest.NoError(t, err)
	defer scheduler.Shutdown()
	locktest.IsError(t, redistest.Await(t, bound, skips, "the run is skipped"), rlock.ErrNotAcquired)

	rdb.RPush(t.Context(), "end", "")
	locktest.NoError(t, rdb.BLPop(t.Context(), bound, "ended").Err())
	_, err = locker.Lock(t.Context(), "report") // taken for the minimum of an hour
	locktest.IsError(t, err, rlock.ErrNotAcquired)

	redistest.Eventually(t, bound, func() bool { // the job's Unlock comes after "ended"
		other.Call("close")
		lock, err := locker.Lock(t.Context(), "report")
		return err == nil && lock.Unlock(t.Context()) == nil
	}, "Close has released the lock")
	locktest.Equal(t, "runs that began and were not counted", rdb.LLen(t.Context(), "begun").Val(), 0)
}

// A scheduler that is shut down while its job runs: the lock is renewed until the job ends.
func TestShutdownWhileAJobRuns(t *testing.T) {
	realtime.Test(t, "a second process with a lease of 6 s")
	t.Parallel()
	server := redistest.Real(t)
	rdb := server.Client()
	client, err := rlock.New(rdb)
	locktest.NoError(t, err)
	defer client.Close()
	other := locktest.StartSecond(t, server.Addr())
	other.Call("schedule")
	locktest.NoError(t, rdb.BLPop(t.Context(), bound, "begun").Err())
	down := other.Start("shutdown")
	locktest.NoError(t, rdb.BLPop(t.Context(), bound, "told").Err())
	for range 2 { // renewals: the first one may have been under way
		left := time.Hour
		redistest.Eventually(t, bound, func() bool {
			before := left
			left = rdb.PTTL(t.Context(), "gocron:job:report").Val()
			return left > before
		}, "the lock is renewed")
	}
	locker := newLocker(t, client)
	_, err = locker.Lock(t.Context(), "report")
	locktest.IsError(t, err, rlock.ErrNotAcquired)
	rdb.RPush(t.Context(), "end", "")
	locktest.Equal(t, "the shutdown", redistest.Await(t, bound, down, "the scheduler is down"), "ok\t")
	other.Call("close")
	lock, err := locker.Lock(t.Context(), "report")
	locktest.NoError(t, err)
	locktest.NoError(t, lock.Unlock(t.Context()))
}

func TestBadInput(t *testing.T) {
	_, err := lockgocron.NewLocker(nil)
	locktest.ErrorSays(t, err, "rlock.New")
	_, err = lockgocron.NewElector(nil, "a")
	locktest.ErrorSays(t, err, "rlock.New")
	client := rlocktest.New(t).Client()
	_, err = lockgocron.NewLocker(client, lockgocron.WithMinimumHold(-time.Second))
	locktest.ErrorSays(t, err, "WithMinimumHold(-1s)")
	_, err = lockgocron.NewElector(client, "")
	locktest.ErrorSays(t, err, "name", "billing:cron:leader")
}
