package fenced

import (
	"context"
	"errors"
	"fmt"
	"time"

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
	return &Semaphore{engine.NewSemaphore((*engine.Client)(client), name, permits, optionsOf(opts)), name, permits}
}

// Permit is a permit of a Semaphore: a hold of the lock of its slot. Unlock gives it back. A nil one, and a zero value, are as those of Hold; their slot is -1.
type Permit struct{ *Hold }

// hold is the permit's hold. That of a nil permit is nil, and a Hold's methods say what that means.
func (p *Permit) hold() *Hold {
	if p == nil {
		return nil
	}
	return p.Hold
}

// Slot returns the slot, from 0 to n-1. No other living permit of the semaphore has it.
func (p *Permit) Slot() int { return p.hold().engine().Slot() }

// Name returns the name of the slot's lock, such as "{jobs}:3": the name to show a guard together with Token where the slot itself is what is guarded.
func (p *Permit) Name() string { return p.hold().engine().Lock().Name() }

// Token returns the token to show with a write, of which Hold.Token says more.
func (p *Permit) Token() int64 { return p.hold().Token() }

// Context returns the context of the permit, which carries its token and ends with it: see Hold.Context.
func (p *Permit) Context() context.Context { return p.hold().Context() }

// Done returns the channel that is closed when the permit ends.
func (p *Permit) Done() <-chan struct{} { return p.hold().Done() }

// Err returns nil while the permit can be trusted, otherwise why not: see Hold.Err.
func (p *Permit) Err() error { return p.hold().Err() }

// Remaining tells for how long the permit is good if no renewal succeeds from now on; 0 once it is over.
func (p *Permit) Remaining() time.Duration { return p.hold().Remaining() }

// Extend makes the lease last for d from now, as Hold.Extend does.
func (p *Permit) Extend(ctx context.Context, d time.Duration) error { return p.hold().Extend(ctx, d) }

// Waited returns a channel that is closed when somebody waits for any permit of the semaphore: see Hold.Waited.
func (p *Permit) Waited() <-chan struct{} { return p.hold().Waited() }

// Unlock gives the permit back, and ends its Context. Its errors are those of Hold.Unlock.
func (p *Permit) Unlock(ctx context.Context) error { return p.hold().Unlock(ctx) }

// Name returns the semaphore's name, as NewSemaphore was given it.
func (s *Semaphore) Name() string {
	if s == nil {
		return ""
	}
	return s.name
}

// Acquire takes a permit, and waits for one until ctx ends. ctx bounds how long this call waits, and not the permit: when ctx ends later the permit goes
// on, until its Unlock or its loss. The options are rlock.Wait, rlock.Lease and rlock.Lasting. The lease is otherwise that of rlock.WithLease, 30 s by default, and is renewed
// until Unlock.
//
// On an error there is no permit. The error is rlock.ErrNotAcquired after rlock.Wait, or one of those of Lock.Acquire. While Redis is away Acquire
// tries again for rlock.WithPatience, 10 s by default, and with rlock.Wait(0) for a second; then it returns what Redis said. What may have reached Redis
// without an answer is released in the background, and takes a slot until then.
func (s *Semaphore) Acquire(ctx context.Context, opts ...rlock.AcquireOption) (*Permit, error) {
	r, err := engine.MakeRequest(opts)
	if err != nil {
		return nil, s.wrap("Acquire", err)
	}
	return s.acquire(ctx, "Acquire", r, (*engine.Lock).Hold)
}

// TryAcquire takes a permit if one comes free within wait; wait 0 asks once. lease 0 is the watchdog's, otherwise 10 ms or more, and not renewed. After the
// wait the error is rlock.ErrNotAcquired if all permits were taken, or others came first. While Redis is away it is as with Acquire and these
// options.
func (s *Semaphore) TryAcquire(ctx context.Context, wait, lease time.Duration) (*Permit, error) {
	return s.acquire(ctx, "TryAcquire", engine.Request{Wait: wait, Lease: lease}, (*engine.Lock).Hold)
}

// Do takes a permit as Acquire does, runs fn with the context of the permit, and unlocks it, also where fn panics. The error is that of the
// acquire, in which case fn did not run; otherwise fn's own, joined with that of Unlock, which is rlock.ErrLost where the permit was lost. fn's context
// ends with ctx, too, and the lease is not renewed after that. It has ctx's holder: within a hold of another lock fn re-enters that.
func (s *Semaphore) Do(ctx context.Context, fn func(ctx context.Context, p *Permit) error) error {
	return s.do(ctx, "Do", engine.Request{Forever: true}, fn)
}

// TryDo is Do that takes the permit as TryAcquire does, with this wait and lease.
func (s *Semaphore) TryDo(ctx context.Context, wait, lease time.Duration, fn func(ctx context.Context, p *Permit) error) error {
	return s.do(ctx, "TryDo", engine.Request{Wait: wait, Lease: lease}, fn)
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
	return freed, (*Lock)(lock).wrap("ForceRelease", err)
}

func (s *Semaphore) do(ctx context.Context, op string, r engine.Request, fn func(context.Context, *Permit) error) error {
	if fn == nil {
		return s.wrap(op, engine.ErrNothingToDo)
	}
	p, err := s.acquire(ctx, op, r, (*engine.Lock).HoldWithin)
	if err != nil {
		return err
	}
	return engine.Do(func() error { return fn(p.Context(), p) }, func() error { return (*Lock)(p.engine().Lock()).wrap(op, p.engine().Unlock(p.Context())) })
}

func (s *Semaphore) acquire(ctx context.Context, op string, r engine.Request, hold func(*engine.Lock, context.Context, engine.Request) (*engine.Held, error)) (*Permit, error) {
	err := s.check()
	if err == nil && r.Reenter {
		err = errors.New("a semaphore is not reentrant: leave rlock.Reenter out")
	}
	if err != nil {
		return nil, s.wrap(op, err)
	}
	held, err := hold(s.lock, ctx, r)
	if errors.Is(err, rlock.ErrNotAcquired) {
		err = noPermit(s.n)
	}
	if err != nil {
		return nil, s.wrap(op, err)
	}
	return &Permit{(*Hold)(held)}, nil
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
