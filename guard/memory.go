package guard

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// ErrFull tells that a write to a resource without a mark was refused, because a [Memory] has as many marks as it may.
// From Check and Do.
var ErrFull = errors.New("no room for one more resource")

// maxResources is the default bound: a million marks take about 200 MB. A service that has more should say so.
const maxResources = 1 << 20

// Memory is the guard of a service that owns its data in one process: it keeps the largest accepted token of each
// resource, its mark. The marks live as long as the Memory. Data that outlives the process needs a guard that is stored
// with it, because after a restart an older token would get in.
//
// Its methods may be used by any number of goroutines. They ask nobody, and an accepted one allocates nothing.
type Memory struct {
	most   int
	unused time.Duration // 0: marks are not forgotten

	mu    sync.Mutex
	marks map[string]*mark
	idle  mark // ring of the marks that nobody uses, the one unused for longest next; only where unused is set
}

// A mark is what is known of one resource. It stays in the map while somebody uses it.
type mark struct {
	resource   string
	seen       atomic.Int64 // 0: nothing was accepted. Written by who has busy
	busy       sync.Mutex   // held while a write runs
	users      int          // who has or waits for busy. This and the rest is guarded by Memory.mu
	since      time.Time    // when the last user left
	prev, next *mark
}

// MemoryOption changes a default of NewMemory.
type MemoryOption func(*Memory)

// WithMaxResources bounds the marks that a Memory keeps, 1,048,576 by default, of about 200 bytes each and the resource's
// name. At the bound a write to a new resource is refused with [ErrFull]: to forget the mark of another one would let a
// stale write in there.
func WithMaxResources(n int) MemoryOption { return func(m *Memory) { m.most = n } }

// WithForgetUnused allows, at the bound, that the mark which was unused for longest is forgotten if that is at least d.
// A holder that was paused for d or longer can then write with its old token. Choose d far above any pause that a process
// survives: hours, not seconds. Without the option marks are forgotten by [Memory.Forget] only.
func WithForgetUnused(d time.Duration) MemoryOption { return func(m *Memory) { m.unused = d } }

// NewMemory returns a Memory without marks. It panics where an option makes no sense, which is a mistake in the program.
func NewMemory(opts ...MemoryOption) *Memory {
	m := &Memory{most: maxResources, marks: map[string]*mark{}}
	for _, opt := range opts {
		if opt != nil {
			opt(m)
		}
	}
	if m.most < 1 {
		panic(fmt.Sprintf("guard: WithMaxResources(%d): use 1 or more", m.most))
	}
	if m.unused < 0 {
		panic(fmt.Sprintf("guard: WithForgetUnused(%v): use a positive duration, or leave the option out", m.unused))
	}
	m.idle.prev, m.idle.next = &m.idle, &m.idle
	return m
}

// Check accepts the token if no larger one was accepted for the resource, and remembers it. The error is [ErrStale],
// [ErrToken] or [ErrFull]. It waits while a Do of the same resource runs. A write after it is not covered: between the
// two a newer one can come. Check is for reads that a write depends on, and for requests that are handled one at a time;
// Do is for writes.
func (m *Memory) Check(resource string, token int64) error { return m.Do(resource, token, accept) }

func accept() error { return nil }

// Do runs write if no larger token was accepted for the resource, and nothing else writes to the resource meanwhile;
// other resources are written at the same time. The token is remembered if write returns nil. If it returns an error,
// which Do returns as it is, or panics, the mark is what it was. The other errors are [ErrStale], [ErrToken] and
// [ErrFull]: write was not called. It must not use this Memory for the same resource, but for Seen: it would wait for
// itself. Several resources, one Do inside another, are taken in one order everywhere: else two goroutines wait for each
// other for ever.
func (m *Memory) Do(resource string, token int64, write func() error) error {
	if err := Check(resource, token); err != nil {
		return err
	}
	if write == nil {
		return fmt.Errorf("guard: %q: pass the write to Do, or call Check", resource)
	}
	k, err := m.enter(resource)
	if err != nil {
		return err
	}
	defer m.leave(k)
	k.busy.Lock()
	defer k.busy.Unlock()
	if seen := k.seen.Load(); token < seen {
		return &StaleError{Resource: resource, Token: token, Seen: seen}
	}
	if err := write(); err != nil {
		return err
	}
	k.seen.Store(token)
	return nil
}

// Seen returns the largest token that was accepted for the resource, 0 if there is none. It waits for no write.
func (m *Memory) Seen(resource string) int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	if k := m.marks[resource]; k != nil {
		return k.seen.Load()
	}
	return 0
}

// Forget drops the mark of a resource that is gone, or that gets its tokens from another source from now on: any token is
// accepted next. It waits while a Do of the resource runs.
func (m *Memory) Forget(resource string) {
	m.mu.Lock()
	k := m.marks[resource]
	if k == nil {
		m.mu.Unlock()
		return
	}
	m.use(k)
	m.mu.Unlock()
	defer m.leave(k)
	k.busy.Lock()
	defer k.busy.Unlock()
	k.seen.Store(0)
}

// enter returns the resource's mark, in use until leave.
func (m *Memory) enter(resource string) (*mark, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	k := m.marks[resource]
	if k == nil {
		if len(m.marks) >= m.most && !m.forgetOne() {
			return nil, fmt.Errorf("guard: %q: %w beside %d: raise WithMaxResources, Forget those that are gone, or allow WithForgetUnused", resource, ErrFull, len(m.marks))
		}
		k = &mark{resource: strings.Clone(resource)} // the caller's string may be a small part of a large one
		m.marks[k.resource] = k
	}
	m.use(k)
	return k, nil
}

func (m *Memory) use(k *mark) {
	k.users++
	k.unlink()
}

// leave ends a use. A mark without a token, whose first write failed or which was forgotten, goes with its last user.
func (m *Memory) leave(k *mark) {
	m.mu.Lock()
	defer m.mu.Unlock()
	k.users--
	switch {
	case k.users > 0:
	case k.seen.Load() == 0:
		delete(m.marks, k.resource)
	case m.unused > 0:
		k.since = time.Now()
		k.prev, k.next = m.idle.prev, &m.idle
		k.prev.next, k.next.prev = k, k
	}
}

// forgetOne makes room if the mark that was unused for longest may be forgotten.
func (m *Memory) forgetOne() bool {
	k := m.idle.next
	if k == &m.idle || time.Since(k.since) < m.unused {
		return false
	}
	k.unlink()
	delete(m.marks, k.resource)
	return true
}

// unlink takes the mark out of the ring, if it is in there.
func (k *mark) unlink() {
	if k.next != nil {
		k.prev.next, k.next.prev = k.next, k.prev
		k.prev, k.next = nil, nil
	}
}
