package lockgocron_test

import (
	"fmt"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/go-co-op/gocron/v2"
	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/adapters/lockgocron"
	"github.com/fencelock/fencelock/rlock"
)

// Two schedulers, as two processes have them, run a job once.
func Example() {
	server, err := miniredis.Run() // in a service: a Redis
	if err != nil {
		panic(err)
	}
	defer server.Close()
	ran := make(chan string, 2)
	for range 2 {
		rdb := redis.NewClient(&redis.Options{Addr: server.Addr()})
		defer rdb.Close()
		client, err := rlock.New(rdb)
		if err != nil {
			panic(err)
		}
		defer client.Close()
		locker, err := lockgocron.NewLocker(client, lockgocron.WithMinimumHold(30*time.Second))
		if err != nil {
			panic(err)
		}
		defer locker.Close()
		scheduler, err := gocron.NewScheduler(gocron.WithDistributedLocker(locker))
		if err != nil {
			panic(err)
		}
		done := make(chan bool, 1)
		_, err = scheduler.NewJob(gocron.DurationJob(time.Hour), gocron.NewTask(func() { ran <- "the report is sent" }),
			gocron.WithName("report"), gocron.WithStartAt(gocron.WithStartImmediately()), gocron.WithEventListeners(
				gocron.AfterJobRuns(func(uuid.UUID, string) { done <- true }),
				gocron.AfterLockError(func(uuid.UUID, string, error) { done <- false })))
		if err != nil {
			panic(err)
		}
		scheduler.Start()
		defer scheduler.Shutdown()
		<-done
	}
	close(ran)
	for line := range ran {
		fmt.Println(line)
	}
	// Output: the report is sent
}
