package main

import (
	"context"
	"fmt"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fencelock/fencelock/fenced"

	"github.com/fencelock/fencelock/internal/test/redisserver"
)

// measureWaitersOnOne is what calls cost that wait for the same lock.
func measureWaitersOnOne(ctx context.Context, r *report) error {
	return measureWaiters(ctx, r, fmt.Sprintf("%d waiters on one lock", r.waiters), "one", 1)
}

// measureWaitersOnMany is what calls cost that wait for a lock each.
func measureWaitersOnMany(ctx context.Context, r *report) error {
	return measureWaiters(ctx, r, fmt.Sprintf("%d waiters on as many locks", r.waiters), "many", r.waiters)
}

// measureWaiters has waiters of one client stand in front of locks that another one holds.
func measureWaiters(ctx context.Context, r *report, heading, name string, n int) error {
	s, err := redisserver.StartApart()
	if err != nil {
		return err
	}
	defer s.Close()
	holder, err := dial(s.Addr(), 10*time.Minute) // no renewals meanwhile
	if err != nil {
		return err
	}
	defer holder.close()
	c, err := dial(s.Addr(), r.lease)
	if err != nil {
		return err
	}
	defer c.close()
	warm := make([]held, 64)
	if err := c.takeAll(ctx, "warm:", warm); err != nil {
		return err
	}
	if err := unlockAll(ctx, warm); err != nil {
		return err
	}
	locks := make([]held, n)
	if err := holder.takeAll(ctx, "lock:", locks); err != nil {
		return err
	}
	if err := pause(ctx, 3*time.Second); err != nil { // those that last have settled
		return err
	}

	parked := parkedGoroutines(r.waiters)
	before := readMemory()
	w := newWaiters(c, r.waiters, n)
	if err := pause(ctx, 5*time.Second); err != nil {
		return err
	}
	after := readMemory().since(before)
	r.profile("waiters-" + name)
	each := per(after.heap+after.stack, r.waiters) - parked // the goroutine is the caller's
	r.say("a waiter: %.0f B of heap, %.0f B of stacks (%.0f B of a goroutine that does nothing), %.2f goroutines",
		per(after.heap, r.waiters), per(after.stack, r.waiters), parked, per(int64(after.goroutines), r.waiters))
	if err := pause(ctx, 12*time.Second); err != nil { // looks at the lock have become rare
		return err
	}
	idle, err := watch(ctx, c.rdb, max(r.idle, 10*time.Second))
	if err != nil {
		return err
	}
	r.say("while nothing happens: %.1f commands a second, %.2f%% of a Redis core, %.2f%% of a client core",
		float64(idle.total)/idle.took.Seconds(), 100*idle.server, 100*idle.client)

	began := time.Now()
	if err := unlockAll(ctx, locks); err != nil {
		return err
	}
	released := time.Since(began)
	if err := w.wait(ctx); err != nil {
		return err
	}
	served := time.Since(began)
	r.say("released in %v, all served after %v", released.Round(time.Millisecond), served.Round(time.Millisecond))
	runtime.KeepAlive(locks)

	r.figure(heading, "goroutines a waiter", "%.2f", per(int64(after.goroutines), r.waiters))
	r.figure(heading, "heap a waiter", "%.0f B", per(after.heap, r.waiters))
	r.figure(heading, "stacks a waiter, its caller's own included", "%.0f B", per(after.stack, r.waiters))
	r.figure(heading, "stack of a goroutine that does nothing", "%.0f B", parked)
	r.figure(heading, "commands a second while nothing happens", "%.1f", float64(idle.total)/idle.took.Seconds())
	r.figure(heading, "share of a Redis core meanwhile", "%.2f%%", 100*idle.server)
	r.figure(heading, "share of a client core meanwhile", "%.2f%%", 100*idle.client)
	r.figure(heading, "time until the locks were released", "%v", released.Round(time.Millisecond))
	r.figure(heading, "time until the first was served", "%v", w.first().Sub(began).Round(time.Microsecond))
	r.figure(heading, "time until all were served", "%v", served.Round(time.Millisecond))
	r.goal("memory a waiter in the client, heap and stack beyond those of an idle goroutine, "+heading, 4096, 3072, each, size)
	return nil
}

// waiters are calls that wait; each unlocks at once what it gets.
type waiters struct {
	group  sync.WaitGroup
	served atomic.Int64 // when the first was, on the wall clock
	failed chan error
}

// newWaiters starts n waiters on this many locks.
func newWaiters(c *client, n, locks int) *waiters {
	w := &waiters{failed: make(chan error, 1)}
	for i := range n {
		w.group.Go(func() {
			lock := fenced.NewLock(c.Client, "lock:"+strconv.Itoa(i%locks))
			ctx, _, err := lock.LockAndGetToken(context.Background())
			if err == nil {
				w.served.CompareAndSwap(0, time.Now().UnixNano())
				err = lock.Unlock(ctx)
			}
			if err != nil {
				select {
				case w.failed <- err:
				default:
				}
			}
		})
	}
	return w
}

func (w *waiters) first() time.Time { return time.Unix(0, w.served.Load()) }

// wait returns when all were served.
func (w *waiters) wait(ctx context.Context) error {
	done := make(chan struct{})
	go func() { w.group.Wait(); close(done) }()
	select {
	case <-done:
	case err := <-w.failed:
		return err
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(5 * time.Minute):
		return fmt.Errorf("waiters hang")
	}
	select {
	case err := <-w.failed:
		return err
	default:
		return nil
	}
}

// parkedGoroutines is the stack of a goroutine that does nothing.
func parkedGoroutines(n int) float64 {
	before := readMemory()
	stop := make(chan struct{})
	var group sync.WaitGroup
	for range n {
		group.Go(func() { <-stop })
	}
	time.Sleep(100 * time.Millisecond)
	parked := readMemory().since(before)
	close(stop)
	group.Wait()
	return per(parked.stack, n)
}
