package recipes

import (
	"context"
	"errors"
	"log"
	"sync"
	"time"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/rlock"
)

// Serve does jobs with four goroutines until jobs is closed or ctx ends, as the context of signal.NotifyContext does at SIGTERM. The jobs
// in hand then have 20 seconds to finish. A job that was not begun goes to back a second later, or when ctx ends: another worker has its
// lock, or had it and died, or Redis did not give it. back must not wait, and not send to jobs, which nobody may read any more.
func Serve(ctx context.Context, client *rlock.Client, jobs <-chan string, do func(ctx context.Context, job string, token int64) error, back func(job string)) error {
	running := context.WithoutCancel(ctx) // the end of ctx must not end the holds
	ctx, done := context.WithCancel(ctx)
	defer done()
	var workers sync.WaitGroup
	for range 4 {
		workers.Go(func() {
			for {
				select {
				case <-ctx.Done():
					return
				case job, more := <-jobs:
					if !more {
						return
					}
					lock, began := fenced.NewLock(client, "lock:job:"+job), false
					err := lock.Do(running, func(ctx context.Context, token int64) error {
						began = true
						return do(ctx, job, token)
					}, rlock.Wait(0))
					if err != nil && !errors.Is(err, rlock.ErrNotAcquired) {
						log.Println(job, err)
					}
					if !began {
						select {
						case <-ctx.Done():
						case <-time.After(time.Second):
						}
						back(job)
					}
				}
			}
		})
	}
	go func() { workers.Wait(); done() }() // all jobs are done
	<-ctx.Done()
	bound, cancel := context.WithTimeout(running, 20*time.Second)
	defer cancel()
	err := client.Shutdown(bound) // after the 20 seconds the contexts of the jobs end, with ErrClosed
	workers.Wait()
	return err
}
