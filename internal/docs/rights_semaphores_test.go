package docs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/observe/inspect"
	"github.com/fencelock/fencelock/observe/locktrace"
	"github.com/fencelock/fencelock/rlock"
)

// usePermits does with a semaphore what it can do.
func usePermits(u *rightsUse) {
	for what, opts := range map[string][]fenced.Option{"counted": nil, "floor": {fenced.WithClockFloor()}, "expiry": {fenced.WithCounterExpiry(time.Hour)}} {
		jobs := fenced.NewSemaphore(u.client(), u.prefix+what, 3, opts...)
		u.must(jobs.Do(u.ctx, func(ctx context.Context, p *fenced.Hold) error { return p.Extend(ctx, time.Minute) }), "a permit, %s", what)
	}
	passOnPermits(u)
	renewPermit(u)
}

// passOnPermits has clients wait for the permits of others: released, and taken away.
func passOnPermits(u *rightsUse) {
	name := u.prefix + "jobs"
	jobs := func() *fenced.Semaphore { return fenced.NewSemaphore(u.client(), name, 2) }
	first := jobs()
	var held [2]*fenced.Hold
	for i := range held {
		p, err := first.Acquire(u.ctx, rlock.Lease(lasting))
		u.must(err, "acquire")
		held[i] = p
	}
	_, err := jobs().Acquire(u.ctx, rlock.Wait(0))
	if !errors.Is(err, rlock.ErrNotAcquired) {
		u.must(fmt.Errorf("%w, and not that none is left", err), "another client's try")
	}
	for _, p := range held {
		waiting := make(chan error, 1)
		go func() {
			waiting <- jobs().Do(u.ctx, func(context.Context, *fenced.Hold) error { return nil })
		}()
		u.eventually(func() bool { return u.inLineOf("fencelock_line_of:{"+name+"}:*") > 0 }, "a client is in the line")
		await(u, p.Waited(), "the holder hears that somebody waits")
		if p == held[0] {
			u.must(p.Unlock(u.ctx), "unlock")
			u.must(await(u, waiting, "the waiter is woken"), "the waiter")
			held[0], err = first.Acquire(u.ctx, rlock.Lease(lasting))
			u.must(err, "acquire again")
			continue
		}
		freed, err := jobs().ForceRelease(u.ctx, p.Slot())
		u.must(err, "ForceRelease")
		if !freed {
			u.must(errors.New("nothing was freed"), "ForceRelease")
		}
		u.must(await(u, waiting, "the waiter is woken"), "the waiter")
	}
	u.must(held[0].Unlock(u.ctx), "unlock")
}

// renewPermit holds a permit until its lease was extended.
func renewPermit(u *rightsUse) {
	renewed := make(chan error, 100)
	c := u.client(rlock.WithLease(1500*time.Millisecond), rlock.WithTrace(&locktrace.Trace{RenewalDone: func(e locktrace.RenewalDone) { renewed <- e.Err }}))
	p, err := fenced.NewSemaphore(c, u.prefix+"renewed", 2).Acquire(u.ctx)
	u.must(err, "acquire")
	u.must(await(u, renewed, "a renewal"), "the renewal")
	u.must(p.Err(), "the permit after its renewal")
	u.must(p.Unlock(u.ctx), "unlock")
}

// inLineOf is how many clients are in the line with this key.
func (u *rightsUse) inLineOf(key string) (n int) {
	for _, admin := range u.admin {
		n += int(admin.ZCard(u.ctx, key).Val()) // a node that has not got the slot says MOVED
	}
	return n
}

// onlyCommands are the commands of a list, without its keys and channels.
func onlyCommands(list []string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(word string) bool { return !strings.HasPrefix(word, "+") })
}

func TestRightsSemaphores(t *testing.T) {
	t.Parallel()
	lists := rightsLists(t)
	s := onServer(t)
	s.exact(lists["semaphores"], slices.Concat(onlyCommands(lists["server"]), s.identity(lists)), usePermits)
	c, _ := onCluster(t)
	if c.sharded {
		c.exact(lists["semaphores"], slices.Concat(onlyCommands(lists["cluster"]), c.identity(lists)), usePermits)
	}
}

// takenPermits has an admin's client take a permit, the only one, and another one wait for it.
func takenPermits(u *rightsUse, admin redis.UniversalClient) (name string) {
	name = u.prefix + "imports"
	jobs := func() *fenced.Semaphore {
		c, err := rlock.New(admin, rlock.WithPresence("imports"), rlock.WithUnlockTimeout(time.Second))
		u.must(err, "New")
		u.atEnd(func() { _ = c.Close() })
		return fenced.NewSemaphore(c, name, 1)
	}
	_, err := jobs().Acquire(u.ctx, rlock.Lease(lasting))
	u.must(err, "acquire")
	ctx, stop := context.WithCancel(u.ctx)
	done := make(chan error, 1)
	u.atEnd(func() { stop(); <-done })
	waits := jobs()
	go func() { done <- waits.Do(ctx, func(context.Context, *fenced.Hold) error { return nil }) }()
	u.eventually(func() bool { return u.inLineOf("fencelock_line_of:{"+name+"}:*") > 0 }, "a client is in the line")
	return name
}

// seePermits looks at a semaphore, and returns the lock of its only slot.
func seePermits(u *rightsUse, admin redis.UniversalClient) inspect.Lock {
	name := takenPermits(u, admin)
	in, err := inspect.New(u.rdb())
	u.must(err, "New")
	s, err := in.Slots(u.ctx, name, 2)
	u.must(err, "Slots")
	if slot := s.Slots[0]; s.Taken != 1 || s.Waiting != 1 || slot.Holder == nil || slot.Token == 0 {
		u.must(fmt.Errorf("%+v", s), "Slots")
	}
	return s.Slots[0]
}

// freePermit frees the slot of a permit that somebody waits for.
func freePermit(u *rightsUse, admin redis.UniversalClient) {
	slot := seePermits(u, admin)
	in, err := inspect.New(u.rdb())
	u.must(err, "New")
	freed, err := in.Free(u.ctx, slot)
	u.must(err, "Free")
	if !freed {
		u.must(errors.New("nothing was freed"), "Free")
	}
	u.eventually(func() bool { return u.inLineOf("fencelock_line_of:{"+slot.Semaphore+"}:*") == 0 }, "who waits has the permit")
}
