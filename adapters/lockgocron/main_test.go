package lockgocron_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/adapters/lockgocron"
	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/rlock"
)

const (
	bound  = time.Minute // for what comes by itself
	leader = "test:leader"
)

func TestMain(m *testing.M) {
	locktest.ServeAsSecond(second)
	os.Exit(locktest.Main(m, 4))
}

// second is the second process: a scheduler, a Locker and an Elector on the server at args[0].
func second(args []string) (locktest.Answer, error) {
	rdb := redis.NewClient(&redis.Options{Addr: args[0]})
	client, err := rlock.New(rdb, rlock.WithLease(6*time.Second))
	if err != nil {
		return nil, err
	}
	locker, err := lockgocron.NewLocker(client, lockgocron.WithMinimumHold(time.Hour))
	if err != nil {
		return nil, err
	}
	var elector *lockgocron.Elector
	var scheduler gocron.Scheduler
	return func(call string, _ ...string) (string, error) {
		switch call {
		case "schedule":
			scheduler, err = schedule(rdb, locker, func(error) {})
			return "", err
		case "shutdown":
			return "", scheduler.Shutdown()
		case "close":
			return "", locker.Close()
		case "campaign":
			elector, err = lockgocron.NewElector(client, leader)
			return "", err
		case "lead":
			return "", elector.IsLeader(context.Background())
		}
		return "", fmt.Errorf("there is no %s", call)
	}, nil
}

// schedule starts a scheduler whose job runs at once, and then only in an hour. The job tells Redis, and ends when it hears from there.
func schedule(rdb *redis.Client, locker gocron.Locker, skipped func(error)) (gocron.Scheduler, error) {
	scheduler, err := gocron.NewScheduler(gocron.WithDistributedLocker(locker), gocron.WithStopTimeout(time.Hour))
	if err != nil {
		return nil, err
	}
	ctx := context.Background()
	_, err = scheduler.NewJob(gocron.DurationJob(time.Hour), gocron.NewTask(func(running context.Context) {
		rdb.RPush(ctx, "begun", os.Getpid())
		stop := context.AfterFunc(running, func() { rdb.RPush(ctx, "told", "") })
		defer stop()
		rdb.BLPop(ctx, 0, "end")
	}), gocron.WithName("report"), gocron.WithStartAt(gocron.WithStartImmediately()), gocron.WithEventListeners(
		gocron.AfterJobRuns(func(_ uuid.UUID, _ string) { rdb.RPush(ctx, "ended", os.Getpid()) }),
		gocron.AfterLockError(func(_ uuid.UUID, _ string, err error) { skipped(err) })))
	scheduler.Start()
	return scheduler, err
}
