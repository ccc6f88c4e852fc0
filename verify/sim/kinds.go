package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/leader"
	"github.com/fencelock/fencelock/rlock"
)

// A kind is what a lock of a plan is: one that one holder has at a time, a read-write lock, or a semaphore with so many permits.
type kind int

const (
	plain kind = 0
	pages kind = -1
)

// kind is the kind of the lock with this name.
func (p plan) kind(lock string) kind {
	for i := range p.Kinds {
		if allLocks[i] == lock {
			return p.Kinds[i]
		}
	}
	return plain
}

// keysOf are the locks that servers have of the lock with this name: the slots of a semaphore.
func (p plan) keysOf(lock string) (keys []string) {
	n := p.kind(lock)
	if n <= 0 {
		return []string{lock}
	}
	for slot := range n {
		keys = append(keys, fmt.Sprintf("{%s}:%d", lock, slot))
	}
	return keys
}

// keyNames are the locks that servers have.
func (p plan) keyNames() (keys []string) {
	for _, lock := range p.lockNames() {
		keys = append(keys, p.keysOf(lock)...)
	}
	return keys
}

// lockOfKey is the name of the lock that servers know by this key.
func lockOfKey(key string) string {
	name, _, is := strings.Cut(strings.TrimPrefix(key, "{"), "}")
	if !is {
		return key
	}
	return name
}

// A how is in which way a call takes a lock.
type how int

const (
	byContext how = iota
	byHold
	byDo
	byTerm // of a leader
	byAll  // with another lock
)

// A lock is what callers use. A wait below 0 is as long as the context.
type lock interface {
	take(ctx context.Context, by how, wait, lease time.Duration) (*taken, error)
}

// A reentrant is a lock that its holder may take again.
type reentrant interface {
	TryLockAndGetToken(ctx context.Context, wait, lease time.Duration) (context.Context, int64, error)
	LockAndGetToken(ctx context.Context) (context.Context, int64, error)
	LockLeaseAndGetToken(ctx context.Context, lease time.Duration) (context.Context, int64, error)
	HoldCount(ctx context.Context) (int, error)
	Unlock(ctx context.Context) error
}

// A taken lock is what a call has got.
type taken struct {
	ctx    context.Context // it ends with the context of the call, too
	token  int64
	slot   string                                       // the lock of a permit's slot
	extend func(context.Context, time.Duration) error   // nil where that cannot be
	left   func(context.Context) (time.Duration, error) // for how long it is good without a renewal, as the client knows, and as the servers do
	unlock func() error

	export func() (string, error) // nil where that cannot be
	second int64                  // the token of the other lock, of a call byAll
	waited func() <-chan struct{} // nil where nobody says who waits
}

// takesByContext takes a lock for the holder of the context.
func takesByContext(ctx context.Context, l reentrant, wait, lease time.Duration) (t *taken, err error) {
	t = &taken{unlock: func() error { return l.Unlock(t.ctx) }}
	switch {
	case wait >= 0:
		t.ctx, t.token, err = l.TryLockAndGetToken(ctx, wait, lease)
	case lease > 0:
		t.ctx, t.token, err = l.LockLeaseAndGetToken(ctx, lease)
	default:
		t.ctx, t.token, err = l.LockAndGetToken(ctx)
	}
	return t, err
}

// options are those of Acquire.
func options(wait, lease time.Duration) (all []rlock.AcquireOption) {
	if wait >= 0 {
		all = append(all, rlock.Wait(wait))
	}
	if lease > 0 {
		all = append(all, rlock.Lease(lease))
	}
	return all
}

// A handed is a hold in the hand of its user.
type handed interface {
	Context() context.Context
	Extend(context.Context, time.Duration) error
	Remaining() time.Duration
	Unlock(context.Context) error
	Waited() <-chan struct{}
	Export() (string, error)
}

// An importer is a lock that takes over exported holds.
type importer interface {
	imports(ctx context.Context, text string, lease time.Duration) (*taken, error)
}

// inHand is the hold h, of a call with this context. ttl asks the servers.
func inHand(ctx context.Context, h handed, ttl func(context.Context) (time.Duration, error)) *taken {
	t := &taken{extend: h.Extend, waited: h.Waited, export: h.Export}
	var end context.CancelFunc
	t.ctx, end = context.WithCancel(h.Context())
	stop := context.AfterFunc(ctx, end)
	t.left = func(ctx context.Context) (time.Duration, error) {
		there, err := ttl(ctx)
		return min(there, h.Remaining()), err
	}
	t.unlock = func() error {
		defer end()
		defer stop()
		return unlocksOnce(h)
	}
	return t
}

// unlocksOnce unlocks the hold in two other goroutines. One of them has nothing to unlock.
func unlocksOnce(h handed) error {
	said := make(chan error, 2)
	for range 2 {
		go func() { said <- h.Unlock(context.Background()) }()
	}
	first, second := <-said, <-said
	if errors.Is(first, rlock.ErrNotHeld) {
		first, second = second, first
	}
	if !errors.Is(second, rlock.ErrNotHeld) {
		return fmt.Errorf("unlocked twice: %w", errors.Join(first, second))
	}
	return first
}

// takesWithin takes a lock by a function that calls another one while it has the lock. It does so until unlock.
func takesWithin(do func(fn func(ctx context.Context, token int64, slot string)) error) (*taken, error) {
	t, there, release, over := new(taken), make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		over <- do(func(ctx context.Context, token int64, slot string) {
			t.ctx, t.token, t.slot = ctx, token, slot
			close(there)
			<-release
		})
	}()
	t.unlock = func() error { close(release); return <-over }
	select {
	case <-there:
		return t, nil
	case err := <-over:
		return nil, err
	}
}

// A fencedLock is a lock with tokens.
type fencedLock struct{ *fenced.Lock }

func (l fencedLock) take(ctx context.Context, by how, wait, lease time.Duration) (*taken, error) {
	switch {
	case by == byHold:
		h, err := l.Acquire(ctx, options(wait, lease)...)
		if err != nil {
			return nil, err
		}
		t := inHand(ctx, h, l.TTL)
		t.token = h.Token()
		return t, nil
	case by == byDo:
		return takesWithin(func(fn func(context.Context, int64, string)) error {
			run := func(ctx context.Context, token int64) error { fn(ctx, token, ""); return nil }
			return l.Do(ctx, run, options(wait, lease)...)
		})
	case by == byTerm && wait < 0 && lease == 0:
		return l.leads(ctx)
	}
	return takesByContext(ctx, l, wait, lease)
}

func (l fencedLock) imports(ctx context.Context, text string, lease time.Duration) (*taken, error) {
	h, err := l.Import(ctx, text, options(-1, lease)...)
	if err != nil {
		return nil, err
	}
	t := inHand(ctx, h, l.TTL)
	t.token = h.Token()
	return t, nil
}

// leads takes the lock for a term.
func (l fencedLock) leads(ctx context.Context) (*taken, error) {
	e, err := leader.New(l.Lock, leader.WithLogger(nothing))
	if err != nil {
		return nil, err
	}
	term, err := e.Campaign(ctx)
	if err != nil {
		return nil, err
	}
	inside, end := context.WithCancel(term.Context())
	stop := context.AfterFunc(ctx, end)
	return &taken{ctx: inside, token: term.Token(), unlock: func() error {
		defer end()
		defer stop()
		return term.StepDown(context.Background())
	}}, nil
}

// takesAll takes both locks by a function that takes several; none of the second's kind is another than the first's.
func takesAll(ctx context.Context, first, second lock, wait, lease time.Duration) (*taken, error) {
	var other int64
	t, err := takesWithin(func(fn func(context.Context, int64, string)) error {
		run := func(ctx context.Context, tokens []int64) error { other = tokens[0]; fn(ctx, tokens[1], ""); return nil }
		if l, is := first.(plainLock); is {
			locks := []*rlock.Lock{second.(plainLock).Lock, l.Lock}
			run := func(ctx context.Context) error { return run(ctx, []int64{0, 0}) }
			return rlock.DoAll(ctx, locks, run, options(wait, lease)...)
		}
		locks := []*fenced.Lock{second.(fencedLock).Lock, first.(fencedLock).Lock}
		return fenced.DoAll(ctx, locks, run, options(wait, lease)...)
	})
	if err == nil {
		t.second = other
	}
	return t, err
}

// A plainLock is a lock without tokens.
type plainLock struct{ *rlock.Lock }

func (l plainLock) imports(ctx context.Context, text string, lease time.Duration) (*taken, error) {
	h, err := l.Import(ctx, text, options(-1, lease)...)
	if err != nil {
		return nil, err
	}
	return inHand(ctx, h, l.TTL), nil
}

func (l plainLock) take(ctx context.Context, by how, wait, lease time.Duration) (*taken, error) {
	if by != byHold {
		return takesByContext(ctx, l, wait, lease)
	}
	h, err := l.Acquire(ctx, options(wait, lease)...)
	if err != nil {
		return nil, err
	}
	return inHand(ctx, h, l.TTL), nil
}

func (l plainLock) TryLockAndGetToken(ctx context.Context, wait, lease time.Duration) (context.Context, int64, error) {
	held, err := l.TryLock(ctx, wait, lease)
	return held, 0, err
}

func (l plainLock) LockAndGetToken(ctx context.Context) (context.Context, int64, error) {
	held, err := l.Lock.Lock(ctx)
	return held, 0, err
}

func (l plainLock) LockLeaseAndGetToken(ctx context.Context, lease time.Duration) (context.Context, int64, error) {
	held, err := l.LockLease(ctx, lease)
	return held, 0, err
}

// A permitLock is a semaphore.
type permitLock struct {
	*fenced.Semaphore
	client *rlock.Client
}

func (l permitLock) take(ctx context.Context, by how, wait, lease time.Duration) (*taken, error) {
	if by == byDo {
		return takesWithin(func(fn func(context.Context, int64, string)) error {
			run := func(ctx context.Context, p *fenced.Hold) error { fn(ctx, p.Token(), p.Name()); return nil }
			return l.Do(ctx, run, options(wait, lease)...)
		})
	}
	var p *fenced.Hold
	var err error
	if wait >= 0 && by == byContext {
		p, err = l.Acquire(ctx, rlock.Wait(wait), rlock.Lease(lease))
	} else {
		p, err = l.Acquire(ctx, options(wait, lease)...)
	}
	if err != nil {
		return nil, err
	}
	return l.inHand(ctx, p), nil
}

func (l permitLock) inHand(ctx context.Context, p *fenced.Hold) *taken {
	t := inHand(ctx, p, fenced.NewLock(l.client, p.Name()).TTL)
	t.token, t.slot = p.Token(), p.Name()
	return t
}

func (l permitLock) imports(ctx context.Context, text string, lease time.Duration) (*taken, error) {
	p, err := l.Import(ctx, text, options(-1, lease)...)
	if err != nil {
		return nil, err
	}
	return l.inHand(ctx, p), nil
}

// ForceUnlock takes a permit from whoever has it.
func (l permitLock) ForceUnlock(ctx context.Context) (bool, error) { return l.ForceRelease(ctx, 0) }
