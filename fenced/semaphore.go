package fenced

import (
	"context"
	"errors"
	"fmt"

	"github.com/fencelock/fencelock/internal/engine"
	"github.com/fencelock/fencelock/rlock"
)

// A Semaphore gives up to n holders at a time a permit each. A permit has a slot, a number from 0 to n-1 that no other living permit has, and a
// fencing token, which is larger than that of whoever had the slot before. So a slot can be a node id, a shard or a port, and storage that checks
// tokens refuses who had it before and does not know yet that it is lost.
//
// Slot i of the semaphore "jobs" is the fenced lock "{jobs}:i" (of "jobs{a}" it is "jobs{a}:i"): what shows locks shows the permits, and NewLock of that name,
// or Redisson's RFencedLock, takes a slot out of service. The permits of a process that has died come back when their lease is over. Those who wait
// are served in the order in which their clients came.
//
// The number of permits is what the caller says, and is stored nowhere. While two programs say 5 and 8, the second one has the slots 5 to 7 for itself.
//
// A Semaphore is not reentrant: each Acquire takes a permit of its own, also within a hold. It works on one Redis, Sentinel and a cluster, and not with
// a client of package quorum. A Semaphore holds no state, and may be used by any number of goroutines.
type Semaphore struct {
	lock *engine.Lock
	name string
	n    int
}

// NewSemaphore returns the semaphore of this name with so many permits, 1 to 1,024; every acquire says so if it is another number. It asks no one. The
// name is any text but the empty one; in a cluster it has no brace, or one pair around a part that is not empty. The options are those of NewLock,
// and are about the tokens of each slot.
func NewSemaphore(client *rlock.Client, name string, permits int, opts ...Option) *Semaphore {
	return &Semaphore{engine.NewSemaphore(engine.ClientOf(client), name, permits, optionsOf(opts)), name, permits}
}

// Name returns the semaphore's name, as NewSemaphore was given it.
func (s *Semaphore) Name() string {
	if s == nil {
		return ""
	}
	return s.name
}

// Acquire takes a permit, and waits for one until ctx ends. ctx bounds how long this call waits, and not the permit: when ctx ends later the permit goes
// on, until its Unlock or its loss. The options are rlock.Wait, rlock.Lease, rlock.MaxHold and rlock.Lasting. The lease is otherwise that of rlock.WithLease, 30 s by default, and is renewed
// until Unlock.
//
// On an error there is no permit. The error is rlock.ErrNotAcquired after rlock.Wait, if all permits were taken, or others came first; or one of those
// of Lock.Acquire. While Redis is away Acquire tries again for rlock.WithPatience, 10 s by default, and with rlock.Wait(0) for a second; then it returns
// what Redis said. What may have reached Redis without an answer is released in the background, and takes a slot until then.
func (s *Semaphore) Acquire(ctx context.Context, opts ...rlock.AcquireOption) (*Hold, error) {
	return s.acquire(ctx, "Acquire", opts, (*engine.Lock).Hold)
}

// Do takes a permit as Acquire does, with these options, runs fn with the context of the permit, and unlocks it, also where fn panics. The error is that of the
// acquire, in which case fn did not run; otherwise fn's own, joined with that of Unlock, which is rlock.ErrLost where the permit was lost. fn's context
// ends with ctx, too, and the lease is not renewed after that. It has ctx's holder: within a hold of another lock fn re-enters that.
func (s *Semaphore) Do(ctx context.Context, fn func(ctx context.Context, permit *Hold) error, opts ...rlock.AcquireOption) error {
	if fn == nil {
		return s.wrap("Do", engine.ErrNothingToDo)
	}
	p, err := s.acquire(ctx, "Do", opts, (*engine.Lock).HoldWithin)
	if err != nil {
		return err
	}
	return engine.Do(func() error { return fn(p.Context(), p) }, func() error { return wrap("Do", p.engine().Lock(), p.engine().Unlock(p.Context())) })
}

// ForceRelease takes the permit of this slot from whoever has it, and has whoever waits called. It returns false where the slot was free. The former holder's
// context ends with rlock.ErrLost when that hears of it: see Lock.ForceUnlock, whose errors these are.
func (s *Semaphore) ForceRelease(ctx context.Context, slot int) (bool, error) {
	if err := s.check(); err != nil {
		return false, s.wrap("ForceRelease", err)
	}
	if slot < 0 || slot >= s.n {
		return false, s.wrap("ForceRelease", fmt.Errorf("slot %d: there are the slots 0 to %d", slot, s.n-1))
	}
	if err := s.lock.CheckUse(); err != nil {
		return false, s.wrap("ForceRelease", err)
	}
	lock := s.lock.SlotLock(slot)
	freed, err := lock.ForceUnlock(ctx)
	if freed {
		s.lock.CallFirst()
	}
	return freed, wrap("ForceRelease", lock, err)
}

func (s *Semaphore) acquire(ctx context.Context, op string, opts []rlock.AcquireOption, hold func(*engine.Lock, context.Context, engine.Request) (engine.Held, error)) (*Hold, error) {
	r, err := engine.MakeRequest(opts)
	if err == nil {
		err = s.check()
	}
	if err == nil && r.Reenter {
		err = errors.New("a semaphore is not reentrant: leave rlock.Reenter out")
	}
	if err != nil {
		return nil, s.wrap(op, err)
	}
	held, err := hold(s.lock, ctx, r)
	if err != nil {
		return nil, s.refused(op, err)
	}
	return &Hold{held: held}, nil
}

// refused is the error of an acquire.
func (s *Semaphore) refused(op string, err error) error {
	if errors.Is(err, rlock.ErrNotAcquired) {
		err = noPermit(s.n)
	}
	return s.wrap(op, err)
}

// noPermit is rlock.ErrNotAcquired of a semaphore with so many permits.
type noPermit int

func (n noPermit) Error() string {
	if n == 1 {
		return "not acquired: the one permit is taken, or others wait for it"
	}
	return fmt.Sprintf("not acquired: all %d permits are taken, or others wait for one", int(n))
}

func (noPermit) Is(target error) bool { return target == rlock.ErrNotAcquired }

// check refuses what NewSemaphore cannot work with.
func (s *Semaphore) check() error {
	switch {
	case s == nil || s.lock == nil:
		return errors.New("the semaphore is nil or a zero value: make it with NewSemaphore")
	case s.name == "":
		return errors.New("the semaphore's name is empty: give it one")
	case s.n < 1 || s.n > engine.MostPermits:
		return fmt.Errorf("%d permits: use 1 to %d", s.n, engine.MostPermits)
	}
	return nil
}

func (s *Semaphore) wrap(op string, err error) error {
	if err == nil {
		return nil
	}
	return &rlock.Error{Op: op, Lock: s.Name(), Err: err}
}
