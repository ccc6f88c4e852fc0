package guard

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fencelock/fencelock/observe/locktrace"
)

// ErrFull tells that a write to a resource without a mark was refused, because a [Memory] has as many marks as it may.
// From Check and Do.
var ErrFull = errors.New("no room for one more resource")

// maxResources is the default bound: a million marks take about 250 MB. A service that has more should say so.
const maxResources = 1 << 20

// ErrNested tells that a write was refused because a write of the same resource is running in the context, an outer one of
// this call: it would wait for itself. From Check and Do.
var ErrNested = errors.New("a write inside a write of the same resource")

// ErrAbsent is for the write of a Do: it returns ErrAbsent, or an error that wraps it, where the resource does not exist.
// The token counts, because who read that there is nothing may create it next. But while no write of the resource has
// succeeded, a [Memory] at its bound forgets the mark before it refuses anybody.
var ErrAbsent = errors.New("the resource does not exist")

// Memory is the guard of a service that owns its data in one process: it keeps the largest accepted token of each
// resource, its mark. The marks live as long as the Memory. Data that outlives the process needs a guard that is stored
// with it, because after a restart an older token would get in.
//
// Its methods may be used by any number of goroutines. They ask nobody. Calls for one resource take turns in the order of
// their arrival.
type Memory struct {
	most   int
	unused time.Duration // 0: marks are not forgotten
	trace  *locktrace.Trace

	mu     sync.Mutex
	marks  map[string]*mark
	idle   mark // ring of the marks that nobody uses, the one unused for longest next; only where unused is set
	absent mark // the same, of the resources that nobody has found
}

// A mark is what is known of one resource. It stays in the map while somebody uses it. All of it is guarded by Memory.mu,
// but who has the turn may read seen and found, because nobody else writes them.
type mark struct {
	resource   string
	seen       int64                // 0: nothing was accepted
	found      bool                 // a write has succeeded, or has panicked
	busy       bool                 // somebody has the turn
	forget     bool                 // when the turn ends
	holder     atomic.Pointer[held] // the context of the write that runs
	waiting    []chan struct{}
	since      time.Time // when the last turn ended
	prev, next *mark
}

// held is the context of a write, by which a call within finds the writes around it.
type held struct{ context.Context }

type heldKey struct{}

func (h *held) Value(key any) any {
	if key == (heldKey{}) {
		return h
	}
	return h.Context.Value(key)
}

// MemoryOption changes a default of NewMemory.
type MemoryOption func(*Memory)

// WithMaxResources bounds the marks that a Memory keeps, 1,048,576 by default, of about 250 bytes each and the resource's
// name. At the bound a write to a new resource is refused with [ErrFull], unless a mark of an [ErrAbsent] can go: to forget
// the mark of another resource would let a stale write in there.
func WithMaxResources(n int) MemoryOption { return func(m *Memory) { m.most = n } }

// WithForgetUnused allows, at the bound, that the mark which was unused for longest is forgotten if that is at least d.
// A holder that was paused for d or longer can then write with its old token. Choose d far above any pause that a process
// survives: hours, not seconds. Without the option marks are forgotten by [Memory.Forget] only.
func WithForgetUnused(d time.Duration) MemoryOption { return func(m *Memory) { m.unused = d } }

// WithTrace makes the guard call t.WriteRefused for each write that it refuses because of a newer token. The caller gets the error all
// the same.
func WithTrace(t *locktrace.Trace) MemoryOption { return func(m *Memory) { m.trace = t } }

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
	m.absent.prev, m.absent.next = &m.absent, &m.absent
	return m
}

// Check accepts the token if no larger one was accepted for the resource, and remembers it. It waits while a Do of the
// same resource runs. A write after it is not covered: between the two a newer one can come. Check is for reads that a
// write depends on, and for requests that are handled one at a time; Do is for writes. The errors are those of Do.
func (m *Memory) Check(ctx context.Context, resource string, token int64) error {
	return m.do(ctx, resource, token, nil)
}

// Do runs write if no larger token was accepted for the resource, and nothing else writes to the resource meanwhile;
// other resources are written at the same time. It waits for its turn until ctx is over.
//
// The token is remembered if write returns nil, or [ErrAbsent]. If write returns another error the mark is what it was:
// return one only where nothing was written. Do returns write's error as it is. A write that panics counts, because nobody
// knows what it has written, and the panic goes on; so does runtime.Goexit.
//
// Where write was not called the error is [ErrStale], [ErrToken], [ErrFull], [ErrNested], or that of ctx with its cause.
//
// write gets a context for what it calls: a Do or Check of the same resource within, which would wait for itself for ever,
// is then ErrNested. With another context nobody can tell. Several resources, one Do inside another, are taken in one order
// everywhere: else two goroutines wait for each other until a context ends.
func (m *Memory) Do(ctx context.Context, resource string, token int64, write func(ctx context.Context) error) error {
	if write == nil {
		return fmt.Errorf("guard: %q: pass the write to Do, or call Check", resource)
	}
	return m.do(ctx, resource, token, write)
}

func (m *Memory) do(ctx context.Context, resource string, token int64, write func(ctx context.Context) error) error {
	if err := Check(resource, token); err != nil {
		return err
	}
	k, err := m.enter(ctx, resource)
	if err != nil {
		return err
	}
	seen, found := k.seen, k.found
	if token < seen {
		m.leave(k, seen, found)
		m.trace.Refused(locktrace.WriteRefused{Context: ctx, Guard: "memory", Resource: resource, Token: token, Seen: seen})
		return &StaleError{Resource: resource, Token: token, Seen: seen}
	}
	defer func() { m.leave(k, seen, found) }()
	if write == nil {
		seen, found = token, true
		return nil
	}
	before := seen
	seen, found = token, true // also if write does not return
	inside := &held{ctx}
	k.holder.Store(inside)
	err = write(inside)
	switch {
	case errors.Is(err, ErrAbsent):
		found = k.found
	case err != nil:
		seen, found = before, k.found
	}
	return err
}

// Seen returns the largest token that was accepted for the resource, 0 if there is none. It waits for no write.
func (m *Memory) Seen(resource string) int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	if k := m.marks[resource]; k != nil {
		return k.seen
	}
	return 0
}

// Forget drops the mark of a resource that is gone, or that gets its tokens from another source from now on: any token is
// accepted next. It does not wait: while a Do of the resource runs, from within too, the mark goes when that Do ends.
func (m *Memory) Forget(resource string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch k := m.marks[resource]; {
	case k == nil:
	case k.busy:
		k.forget = true
	default:
		m.drop(k)
	}
}

// enter waits for the turn at the resource, which leave ends, and returns its mark.
func (m *Memory) enter(ctx context.Context, resource string) (*mark, error) {
	if ctx == nil {
		return nil, fmt.Errorf("guard: %q: ctx is nil: pass the caller's, or context.Background() where there is none", resource)
	}
	if ctx.Err() != nil {
		return nil, over(ctx, resource)
	}
	m.mu.Lock()
	k := m.marks[resource]
	switch {
	case k == nil:
		if len(m.marks) >= m.most && !m.forgetOne() {
			defer m.mu.Unlock()
			return nil, fmt.Errorf("guard: %q: %w beside %d: raise WithMaxResources, Forget those that are gone, or allow WithForgetUnused", resource, ErrFull, len(m.marks))
		}
		k = &mark{resource: strings.Clone(resource)} // the caller's string may be a small part of a large one
		m.marks[k.resource] = k
	case k.busy:
		return k, m.wait(ctx, k)
	}
	defer m.mu.Unlock()
	k.busy = true
	k.unlink()
	return k, nil
}

// wait waits for the turn at a mark that is busy. It unlocks m.mu.
func (m *Memory) wait(ctx context.Context, k *mark) error {
	turn := make(chan struct{})
	k.waiting = append(k.waiting, turn)
	m.mu.Unlock()
	var err error
	if k.isHeldBy(ctx) {
		err = fmt.Errorf("guard: %q: %w: call it before or after that one", k.resource, ErrNested)
	} else {
		select {
		case <-turn:
		case <-ctx.Done():
		}
		if ctx.Err() == nil {
			return nil
		}
		err = over(ctx, k.resource)
	}
	m.mu.Lock()
	i := slices.Index(k.waiting, turn)
	if i >= 0 {
		k.waiting = slices.Delete(k.waiting, i, i+1)
	}
	m.mu.Unlock()
	if i < 0 { // the turn has come all the same
		m.leave(k, k.seen, k.found)
	}
	return err
}

// isHeldBy tells whether the turn at the mark is that of a Do around a call with this context.
func (k *mark) isHeldBy(ctx context.Context) bool {
	for h, ok := ctx.Value(heldKey{}).(*held); ok; h, ok = h.Context.Value(heldKey{}).(*held) {
		if h == k.holder.Load() {
			return true
		}
	}
	return false
}

// over is the error of a call whose context has ended.
func over(ctx context.Context, resource string) error {
	err := ctx.Err()
	if cause := context.Cause(ctx); !errors.Is(err, cause) {
		err = fmt.Errorf("%w: %w", err, cause)
	}
	return fmt.Errorf("guard: %q: nothing was written: %w", resource, err)
}

// leave ends a turn, and passes it on. A mark without a token, whose first write failed or which was forgotten, goes with
// its last user.
func (m *Memory) leave(k *mark, seen int64, found bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	k.seen, k.found = seen, found
	k.holder.Store(nil)
	if k.forget {
		k.seen, k.found, k.forget = 0, false, false
	}
	if len(k.waiting) > 0 {
		close(k.waiting[0])
		k.waiting = slices.Delete(k.waiting, 0, 1)
		return
	}
	k.busy, k.waiting = false, nil
	switch {
	case k.seen == 0:
		m.drop(k)
	case !k.found:
		k.link(&m.absent)
	case m.unused > 0:
		k.since = time.Now()
		k.link(&m.idle)
	}
}

// forgetOne makes room: the mark of a resource that nobody has found goes, or the one that was unused for longest if it
// may be forgotten.
func (m *Memory) forgetOne() bool {
	k := m.absent.next
	if k == &m.absent {
		k = m.idle.next
		if k == &m.idle || time.Since(k.since) < m.unused {
			return false
		}
	}
	m.drop(k)
	return true
}

func (m *Memory) drop(k *mark) {
	k.unlink()
	delete(m.marks, k.resource)
}

// link puts the mark at the end of a ring.
func (k *mark) link(ring *mark) {
	k.prev, k.next = ring.prev, ring
	k.prev.next, k.next.prev = k, k
}

// unlink takes the mark out of the ring, if it is in there.
func (k *mark) unlink() {
	if k.next != nil {
		k.prev.next, k.next.prev = k.next, k.prev
		k.prev, k.next = nil, nil
	}
}
