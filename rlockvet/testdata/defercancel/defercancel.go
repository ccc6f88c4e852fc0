package defercancel

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/rlock"
)

// bad: the hold that the caller gets has ended.
func bad(ctx context.Context, lock *rlock.Lock) (func() error, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	held, err := lock.Lock(ctx) // want `the hold leaves the function, and ends with its context, by the deferred cancel. Use Acquire, whose context bounds only the wait`
	if err != nil {
		return nil, err
	}
	return func() error { return lock.Unlock(held) }, nil
}

// good waits as long, and the hold lasts until its Unlock.
func good(ctx context.Context, lock *rlock.Lock) (func() error, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	hold, err := lock.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	return func() error { return hold.Unlock(context.Background()) }, nil
}

type store struct {
	lock  *rlock.Lock
	held  context.Context
	holds map[string]context.Context
	all   sync.Map
	last  atomic.Value
	ch    chan context.Context
	undo  func() error
}

type handle struct {
	lock  *rlock.Lock
	held  context.Context
	token int64
}

var global context.Context

func returnsIt(ctx context.Context, lock *rlock.Lock) (context.Context, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	return lock.Lock(ctx) // want `the hold leaves the function`
}

func returnsItsResult(ctx context.Context, lock *rlock.Lock) (held context.Context, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	held, err = lock.TryLock(ctx, time.Second, 0) // want `the hold leaves the function`
	return held, err
}

func returnsItDerived(ctx context.Context, lock *rlock.Lock) (context.Context, error) {
	short, cancel := context.WithDeadline(ctx, time.Now().Add(time.Second))
	defer func() { cancel() }()
	held, err := lock.Lock(context.WithValue(short, "k", 1)) // want `the hold leaves the function`
	if err != nil {
		return nil, err
	}
	return context.WithValue(held, "k", 2), nil
}

func ofANewHolder(ctx context.Context, lock *rlock.Lock) (*handle, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	held, err := lock.Lock(rlock.NewHolder(ctx)) // want `the hold leaves the function`
	if err != nil {
		return nil, err
	}
	h := &handle{lock: lock}
	h.held = held
	return h, nil
}

func (s *store) field(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	held, err := s.lock.Lock(ctx) // want `the hold leaves the function`
	if err != nil {
		return err
	}
	if err := work(held); err != nil {
		return errors.Join(err, s.lock.Unlock(held))
	}
	s.held = held
	return nil
}

func (s *store) fieldAtOnce(ctx context.Context) (err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	s.held, err = s.lock.Lock(ctx) // want `the hold leaves the function`
	return err
}

func (s *store) inAMap(ctx context.Context, key string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	held, err := s.lock.Lock(ctx) // want `the hold leaves the function`
	if err == nil {
		s.holds[key] = held
	}
	return err
}

func (s *store) inASyncMap(ctx context.Context, key string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	held, err := s.lock.Lock(ctx) // want `the hold leaves the function`
	if err != nil {
		return err
	}
	h := handle{held: held}
	s.all.Store(key, &h)
	return nil
}

func inAGlobal(ctx context.Context, lock *rlock.Lock) error {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	held, err := lock.Lock(ctx) // want `the hold leaves the function`
	if err != nil {
		return err
	}
	global = held
	return nil
}

func (s *store) byAChannel(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	held, err := s.lock.Lock(ctx) // want `the hold leaves the function`
	if err != nil {
		return err
	}
	s.ch <- held
	return nil
}

func (s *store) closure(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	held, err := s.lock.Lock(ctx) // want `the hold leaves the function`
	if err != nil {
		return err
	}
	undo := func() error { return s.lock.Unlock(held) }
	s.undo = sync.OnceValue(undo)
	return nil
}

func goroutine(ctx context.Context, lock *rlock.Lock) error {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	held, err := lock.Lock(ctx) // want `the hold leaves the function`
	if err != nil {
		return err
	}
	go func() {
		defer lock.Unlock(held)
		_ = work(held)
	}()
	return nil
}

func goroutineWithArgument(ctx context.Context, lock *rlock.Lock) error {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	held, err := lock.Lock(ctx) // want `the hold leaves the function`
	if err != nil {
		return err
	}
	go run(held, lock)
	return nil
}

func token(ctx context.Context, lock *fenced.Lock) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	held, token, err := lock.LockAndGetToken(ctx) // want `the hold leaves the function`
	if err != nil {
		return 0, err
	}
	_ = work(held)
	return token, nil
}

func made(ctx context.Context, lock *rlock.Lock) (*handle, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	held, err := lock.Lock(ctx) // want `the hold leaves the function`
	if err != nil {
		return nil, err
	}
	return newHandle(held, lock), nil
}

func newHandle(held context.Context, lock *rlock.Lock) *handle {
	return &handle{lock: lock, held: held}
}

func outer(ctx context.Context, lock *rlock.Lock) (held context.Context, err error) {
	err = again(func() (err error) {
		ctx, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		held, err = lock.Lock(ctx) // want `the hold leaves the function`
		return err
	})
	return held, err
}

// What follows is right.

func section(ctx context.Context, lock *fenced.Lock, s *store) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	held, token, err := lock.LockAndGetToken(ctx)
	if err != nil {
		return 0, err
	}
	defer lock.Unlock(held)
	s.held = held
	s.undo = func() error { return work(held) }
	return token, nil
}

func unlocksOnAllPaths(ctx context.Context, lock *rlock.Lock, s *store) error {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	held, err := lock.Lock(ctx)
	if err != nil {
		return err
	}
	s.last.Store(held)
	if err := work(held); err != nil {
		return errors.Join(err, lock.Unlock(held))
	}
	return lock.Unlock(held)
}

func unlocksElsewhere(ctx context.Context, lock *rlock.Lock, s *store) error {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	held, err := lock.Lock(ctx)
	if err != nil {
		return err
	}
	defer release(lock, held)
	s.held = held
	return work(held)
}

func release(lock *rlock.Lock, held context.Context) { _ = lock.Unlock(held) }

func waitsForIt(ctx context.Context, lock *rlock.Lock) error {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	held, err := lock.Lock(ctx)
	if err != nil {
		return err
	}
	done := make(chan error)
	go func() {
		defer lock.Unlock(held)
		done <- work(held)
	}()
	return <-done
}

func outlives(ctx context.Context, lock *rlock.Lock) (context.Context, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	return lock.Lock(rlock.NewHolder(context.WithoutCancel(ctx)))
}

func cancelsLater(ctx context.Context, lock *rlock.Lock) (func(), error) {
	ctx, cancel := context.WithCancel(ctx)
	held, err := lock.Lock(ctx)
	if err != nil {
		cancel()
		return nil, err
	}
	return func() {
		defer cancel()
		_ = lock.Unlock(held)
	}, nil
}

func cancelsOnError(ctx context.Context, lock *rlock.Lock) (held context.Context, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer func() {
		if err != nil {
			cancel()
		}
	}()
	return lock.Lock(ctx)
}

// perhaps: which context it is depends on a condition, and the check is silent.
func perhaps(ctx context.Context, lock *rlock.Lock, short bool) (context.Context, error) {
	if short {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Second)
		defer cancel()
	}
	held, err := lock.Lock(ctx)
	return held, err
}

func anotherContext(ctx context.Context, lock *rlock.Lock) (context.Context, error) {
	short, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	if err := work(short); err != nil {
		return nil, err
	}
	return lock.Lock(ctx)
}

func (s *store) copied(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	held, err := s.lock.Lock(ctx)
	if err != nil {
		return err
	}
	h := &handle{lock: s.lock, held: held}
	defer h.lock.Unlock(h.held)
	return work(h.held)
}

func leftToItsLease(ctx context.Context, lock *fenced.Lock) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	held, token, err := lock.TryLockAndGetToken(ctx, 0, time.Minute)
	if err != nil {
		return 0, err
	}
	return token, work(held)
}

func again(fn func() error) error { return errors.Join(fn(), fn()) }

func run(held context.Context, lock *rlock.Lock) {
	defer lock.Unlock(held)
	_ = work(held)
}

func work(context.Context) error { return nil }
